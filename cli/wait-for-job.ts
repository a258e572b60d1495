import type pg from 'pg';
import { postgresEventLog } from '../src/log/postgres/postgres-event-log.ts';
import { readDatabase } from '../src/read/database.ts';
import { withLiveView } from '../src/read/live-view.ts';
import { resolveJob } from '../src/read/resolve-job.ts';

/** Waits until a job has ended, woken by the log; false when it has not within `deadlineMs`. */
export async function waitForJob(pool: pg.Pool, jobId: string, deadlineMs: number): Promise<boolean> {
  const signal = AbortSignal.timeout(deadlineMs);
  const log = postgresEventLog(pool);
  const { position } = await log.head();
  if (await hasEnded(pool, jobId)) return true;
  for await (const page of log.follow({ after: position, signal })) {
    const ended = page.some(({ event }) => {
      if (event.type !== 'job_completed' && event.type !== 'job_failed') return false;
      return event.data.job_id === jobId;
    });
    if (ended) return true;
  }
  return false;
}

async function hasEnded(pool: pg.Pool, jobId: string): Promise<boolean> {
  const job = await withLiveView(readDatabase(pool), (view) => resolveJob(view, jobId));
  return job.ok && (job.value.status === 'completed' || job.value.status === 'failed');
}
