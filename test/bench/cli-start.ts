import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { requestNodes, testTransactor } from '../support/fleet.ts';
import type { Benchmark } from './benchmark.ts';
import { compare } from './rounds.ts';

const CLI = join(import.meta.dirname, '../../cli/bin/pushleft-controller.js');
const HELLO = join(import.meta.dirname, 'hello/bin.js');

/** How fast a command is there: whole runs of `fleet list` on a running database, against an oclif command that says hello. */
export const cliStartBenchmark: Benchmark = {
  name: 'cli-start',
  what: '`fleet list` from start to end, against a bare oclif hello',
  async run({ postgres, quick }) {
    const url = await postgres.createDatabase('cli_start');
    const transactor = testTransactor(url);
    await requestNodes(transactor, 20);
    await transactor.close();
    const { baseline, candidate, ratio } = await compare(
      {
        baseline: () => runsPerSecond([HELLO, 'hello'], {}),
        candidate: () => runsPerSecond([CLI, 'fleet', 'list'], { DATABASE_URL: url }),
      },
      quick ? 5 : 25,
    );
    return { ratio, figures: { fleet_list_ms: 1_000 / candidate, hello_ms: 1_000 / baseline } };
  },
};

async function runsPerSecond(args: readonly string[], env: Readonly<Record<string, string>>): Promise<number> {
  const started = performance.now();
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`);
  return 1_000 / (performance.now() - started);
}
