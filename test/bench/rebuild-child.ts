import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { readEvents } from '../../src/log/postgres/reader.ts';
import { rebuild } from '../../src/projector/rebuild.ts';
import { answerQuestions } from './child.ts';

/**
 * Rebuilds (or merely reads the log) when it is asked to, and answers with how long that took and the most memory this process ever
 * used. Environment: DATABASE_URL.
 */
const limits = { ...READER_LIMITS, statementMs: 0, idleInTransactionMs: 0 };
const pool = createPool({ url: process.env['DATABASE_URL'] ?? '', program: 'bench', limits, max: 2 });

async function readLog(): Promise<void> {
  for (let after = 0; ; ) {
    const events = await readEvents(pool, { after, limit: 5_000 });
    if (events.length === 0) return;
    after += events.length;
  }
}

answerQuestions(async (what) => {
  const started = performance.now();
  await (what === 'rebuild' ? rebuild(pool) : readLog());
  return { seconds: (performance.now() - started) / 1_000, peakMb: process.resourceUsage().maxRSS / 1_024 };
});
process.send?.('ready');
