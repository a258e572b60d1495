import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { queueJobCommand } from '../commands/job.ts';
import { newJob } from '../commands/new-job.ts';
import type { NodeState } from '../domain/node/state.ts';
import { describeRefusal } from '../domain/refusal.ts';
import { readDatabase } from '../read/database.ts';
import type { NodeMaker } from './nodes.ts';

const POLL_MS = 100;
/** The doctor's checks take a second; leases that a killed agent held run out in between. */
const JOB_DEADLINE_MS = 180_000;

/** Has every node examine its host, and waits for the reports. Answers how many came; throws for a job that failed or takes too long. */
export async function examineNodes(maker: NodeMaker, nodes: readonly NodeState[]): Promise<number> {
  const jobs = new Map<string, NodeState>();
  for (const node of nodes) jobs.set(await queue(maker, node), node);
  const waiting = new Set(jobs.keys());
  const deadline = performance.now() + JOB_DEADLINE_MS;
  while (waiting.size > 0) {
    for (const { job_id, status, failure_reason } of await readStates(maker.fleet.pool, [...waiting])) {
      const name = jobs.get(job_id)?.name ?? job_id;
      if (status === 'failed') throw new Error(`the job that examines ${name} failed: ${failure_reason ?? 'unknown'}`);
      if (status !== 'completed') continue;
      waiting.delete(job_id);
      maker.say(`${name}: examined its host (job ${job_id.slice(0, 8)})`);
    }
    if (performance.now() > deadline) {
      const names = [...waiting].map((id) => jobs.get(id)?.name ?? id);
      throw new Error(`${names.join(', ')}: no report after ${JOB_DEADLINE_MS / 1_000} s`);
    }
    if (waiting.size > 0) await delay(POLL_MS, undefined, { signal: maker.signal });
  }
  return jobs.size;
}

async function queue({ transactor, actor }: NodeMaker, { node_id, name }: NodeState): Promise<string> {
  const job = newJob({ jobId: randomUUID(), kind: 'diagnose_host', nodeId: node_id, pool: null, payload: {} });
  if (!job.ok) throw new Error(job.problem);
  const outcome = await transactor.execute(queueJobCommand, job.value, { actor });
  if (outcome.ok) return job.value.job_id;
  throw new Error(`no job for ${name}: ${describeRefusal(outcome.refusal).message}`);
}

function readStates(pool: pg.Pool, jobIds: readonly string[]) {
  return readDatabase(pool)
    .selectFrom('fleet.jobs')
    .select(['job_id', 'status', 'failure_reason'])
    .where('job_id', 'in', jobIds)
    .execute();
}
