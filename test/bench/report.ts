import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import type { Benchmark, Measured } from './benchmark.ts';

/** A benchmark's outcome as it is reported; keys are stable. `error` stands where it could not be measured. */
export interface Result {
  readonly name: string;
  readonly what: string;
  readonly ratio: number | null;
  readonly must_reach?: number;
  readonly met?: boolean;
  readonly error?: string;
  readonly figures: Readonly<Record<string, number>>;
}

/** The machine, and how busy it was when it was asked: figures are worth little without. */
export interface Machine {
  readonly cpus: number;
  readonly model: string;
  readonly memory_gb: number;
  readonly node: string;
  readonly load_average: readonly number[];
}

/** A measurement as it is reported, figures to three digits. */
export function toResult({ name, what, mustReach }: Benchmark, { ratio, figures }: Measured): Result {
  const rounded = Object.entries(figures).map(([figure, value]) => [figure, round(value)]);
  const goal =
    mustReach === undefined ? {} : { must_reach: mustReach, met: ratio !== null && round(ratio) >= mustReach };
  return { name, what, ratio: ratio === null ? null : round(ratio), ...goal, figures: Object.fromEntries(rounded) };
}

/** What could not be measured is told, not left out; a goal that was not measured is not met. */
export function toFailure({ name, what, mustReach }: Benchmark, error: unknown): Result {
  const goal = mustReach === undefined ? {} : { must_reach: mustReach, met: false };
  return { name, what, ratio: null, ...goal, error: String(error), figures: {} };
}

/** The machine now. */
export function describeMachine(): Machine {
  return {
    cpus: availableParallelism(),
    model: cpus()[0]?.model.trim() ?? 'unknown',
    memory_gb: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    load_average: loadavg().map((load) => round(load)),
  };
}

/** One result for people: its ratio and goal, then its figures. */
export function formatResult({ name, what, ratio, must_reach, met, error, figures }: Result): string {
  const goal = must_reach === undefined ? '' : `  (at least ${must_reach}: ${met === true ? 'met' : 'NOT MET'})`;
  const head = `${name.padEnd(16)}${(ratio === null ? '-' : `${ratio} x`).padStart(10)}${goal}  ${what}`;
  const lines = Object.entries(figures).map(
    ([figure, value]) => `${''.padEnd(26)}${figure.padEnd(24)}${value.toLocaleString('en-US').padStart(12)}`,
  );
  return [head, ...(error === undefined ? [] : [`${''.padEnd(26)}${error}`]), ...lines].join('\n');
}

/** Three significant digits, whole numbers from a thousand up. */
function round(value: number): number {
  return value >= 1_000 ? Math.round(value) : Number(value.toPrecision(3));
}
