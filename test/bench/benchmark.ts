import type { BenchPostgres } from './postgres.ts';

/** What a benchmark runs on. `quick` asks for a smaller measurement whose ratios are rougher. */
export interface BenchContext {
  readonly postgres: BenchPostgres;
  readonly quick: boolean;
}

/** What a benchmark measured. `ratio` is candidate over baseline (more is better); null where there is nothing to compare with. */
export interface Measured {
  readonly ratio: number | null;
  /** Further figures by name, units in the names. */
  readonly figures: Readonly<Record<string, number>>;
}

/** One benchmark. `mustReach` is the ratio that issue and design ask for. */
export interface Benchmark {
  readonly name: string;
  readonly what: string;
  readonly mustReach?: number;
  run(context: BenchContext): Promise<Measured>;
}
