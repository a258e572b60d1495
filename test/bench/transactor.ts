import pg from 'pg';
import { requestNodeCommand } from '../../src/commands/node.ts';
import { clientConfig, WRITER_LIMITS } from '../../src/database/connect.ts';
import { execute, nodeRequest, testTransactor } from '../support/fleet.ts';
import type { Benchmark } from './benchmark.ts';
import { requestNodeAlone } from './one-by-one.ts';
import { compare, ratePerSecond } from './rounds.ts';

/** The server takes 200 in all, and more only queue at the lock. On a busy machine 4, 16 and 64 gave ratios of 11, 24 and 23. */
const MAX_CONNECTIONS = 16;

/** Commands a second through one transactor with this many callers, against one transaction per append. */
export function transactorBenchmark(callers: number, mustReach?: number): Benchmark {
  return {
    name: `transactor-${callers}`,
    what: `commands/s with ${callers} callers, against one transaction each`,
    ...(mustReach === undefined ? {} : { mustReach }),
    async run({ postgres, quick }) {
      const url = await postgres.createDatabase(`transactor_${callers}`);
      const config = clientConfig({ url, program: 'bench', limits: WRITER_LIMITS });
      const pool = new pg.Pool({ ...config, max: Math.min(callers, MAX_CONNECTIONS), connectionTimeoutMillis: 0 });
      const transactor = testTransactor(url);
      const durationMs = quick ? 500 : 2_000;
      try {
        const { baseline, candidate, ratio } = await compare(
          {
            baseline: () => ratePerSecond(callers, durationMs, () => requestNodeAlone(pool)),
            candidate: () =>
              ratePerSecond(callers, durationMs, async () => {
                const outcome = await execute(transactor, requestNodeCommand, nodeRequest());
                if (!outcome.ok) throw new Error(outcome.refusal.code);
              }),
          },
          quick ? 3 : 7,
        );
        return { ratio, figures: { commands_per_s: candidate, one_by_one_per_s: baseline } };
      } finally {
        await transactor.close();
        await pool.end();
      }
    },
  };
}
