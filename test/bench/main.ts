import { parseArgs } from 'node:util';
import type { Benchmark } from './benchmark.ts';
import { cliStartBenchmark } from './cli-start.ts';
import { issuanceBenchmark } from './issuance-benchmark.ts';
import { leaseEmptyBenchmark } from './lease-empty.ts';
import { leaseGrantedBenchmark } from './lease-granted.ts';
import { startBenchPostgres } from './postgres.ts';
import { rebuildBenchmark } from './rebuild.ts';
import { describeMachine, formatResult, type Result, toFailure, toResult } from './report.ts';
import { transactorBenchmark } from './transactor.ts';

const benchmarks: readonly Benchmark[] = [
  leaseEmptyBenchmark,
  leaseGrantedBenchmark,
  transactorBenchmark(1, 0.8),
  transactorBenchmark(16),
  transactorBenchmark(256, 8),
  rebuildBenchmark,
  issuanceBenchmark,
  cliStartBenchmark,
];

const USAGE = `usage: npm run bench -- [--json] [--quick] [--only NAME]...
names: ${benchmarks.map(({ name }) => name).join(', ')}`;

interface Options {
  readonly json: boolean;
  readonly quick: boolean;
  readonly chosen: readonly Benchmark[];
}

function readOptions(args: readonly string[]): Options | undefined {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { json: { type: 'boolean' }, quick: { type: 'boolean' }, only: { type: 'string', multiple: true } },
    });
    const only = values.only ?? benchmarks.map(({ name }) => name);
    const chosen = benchmarks.filter(({ name }) => only.includes(name));
    if (chosen.length < new Set(only).size) return undefined;
    return { json: values.json === true, quick: values.quick === true, chosen };
  } catch {
    return undefined;
  }
}

async function run({ json, quick, chosen }: Options): Promise<void> {
  const machine = describeMachine();
  await using postgres = await startBenchPostgres();
  const results: Result[] = [];
  for (const benchmark of chosen) {
    process.stderr.write(`${benchmark.name} ...\n`);
    const measured = benchmark.run({ postgres, quick });
    const result = await measured.then(
      (figures) => toResult(benchmark, figures),
      (error: unknown) => toFailure(benchmark, error),
    );
    results.push(result);
    if (!json) console.log(formatResult(result));
  }
  if (json) console.log(JSON.stringify({ benchmarks: results, machine }));
  else console.log(`on ${machine.cpus} x ${machine.model}, load ${machine.load_average.join(' ')} at the start`);
}

const options = readOptions(process.argv.slice(2));
if (options === undefined) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  await run(options);
}
