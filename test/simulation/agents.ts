import { hash, randomUUID } from 'node:crypto';
import { completeJobCommand, leaseJobCommand } from '../../src/commands/job.ts';
import type { Report } from '../../src/domain/job/purpose.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';

const KINDS = ['ensure_application', 'teardown_application', 'publish_ingress'];

/** How agents behave. */
export interface Behaviour {
  /** Whether a job of this kind fails on this node. */
  readonly refuses: (kind: string, nodeId: string) => boolean;
  /** Whether the instance that a job starts runs once. */
  readonly runsOnce: (jobId: string) => Promise<boolean>;
}

const WILLING: Behaviour = { refuses: () => false, runsOnce: () => Promise.resolve(false) };

/** Agents without sockets: each asks until there is nothing more for it, and does at once what it is given. Answers how many jobs were done. */
export async function work(
  transactor: Transactor,
  fingerprints: ReadonlyMap<string, string>,
  behaviour: Behaviour = WILLING,
): Promise<number> {
  const done = await Promise.all(
    [...fingerprints].map(([nodeId, fingerprint]) => workOf(transactor, nodeId, fingerprint, behaviour)),
  );
  return done.reduce((sum, one) => sum + one, 0);
}

async function workOf(
  transactor: Transactor,
  nodeId: string,
  fingerprint: string,
  { refuses, runsOnce }: Behaviour,
): Promise<number> {
  const options = { actor: { kind: 'agent', id: nodeId } } as const;
  for (let done = 0; ; done += 1) {
    const token_sha256 = hash('sha256', randomUUID());
    const asked = { fingerprint, request_id: randomUUID(), kinds: KINDS, token_sha256, lease_ms: 60_000 };
    const leased = await transactor.execute(leaseJobCommand, asked, options);
    if (!leased.ok || typeof leased.reply['job_id'] !== 'string') return done;
    const { job_id, kind } = leased.reply;
    const reported = {
      fingerprint,
      job_id,
      token_sha256,
      outcome: refuses(String(kind), nodeId) ? 'failed' : 'succeeded',
      result: '{}',
      result_sha256: hash('sha256', '{}'),
      report: reportOf(String(kind), await runsOnce(job_id)),
    } as const;
    await transactor.execute(completeJobCommand, reported, options);
  }
}

function reportOf(kind: string, once: boolean): Report {
  if (kind === 'publish_ingress') return { kind: 'route', serving: true };
  if (kind === 'teardown_application') return { kind: 'removed' };
  return once ? { kind: 'done' } : { kind: 'ready', address: '10.0.0.7', port: 40_000 };
}
