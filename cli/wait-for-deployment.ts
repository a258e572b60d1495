import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { DeploymentStatus } from '../src/domain/deployment/state.ts';
import { readDatabase } from '../src/read/database.ts';
import { withLiveView } from '../src/read/live-view.ts';
import { type DeploymentDetails, readDeployment } from '../src/read/workloads.ts';
import { refusalFailure } from './failure.ts';

const LOOK_MS = 300;

/**
 * Looks at a deployment until it is in one of these statuses, and answers it as it is then; or as it is after `deadlineMs`. `say` gets a
 * line whenever something has changed. Throws the refusal of a deployment that is not known.
 */
export async function waitForDeployment(
  pool: pg.Pool,
  id: string,
  { until, deadlineMs, say }: { until: readonly DeploymentStatus[]; deadlineMs: number; say: (line: string) => void },
): Promise<DeploymentDetails> {
  const deadline = performance.now() + deadlineMs;
  for (let said = ''; ; ) {
    const read = await withLiveView(readDatabase(pool), (view) => readDeployment(view, id));
    if (!read.ok) throw refusalFailure(read.refusal);
    const line = progressOf(read.value);
    if (line !== said) say(line);
    said = line;
    if (until.includes(read.value.deployment.status) || performance.now() >= deadline) return read.value;
    await delay(LOOK_MS);
  }
}

function progressOf({ deployment, instances }: DeploymentDetails): string {
  const counts = Map.groupBy(
    instances.filter(({ status }) => status !== 'lost' && status !== 'removed'),
    ({ status }) => status,
  );
  const parts = [...counts].map(([status, of]) => `${of.length} ${status.replaceAll('_', ' ')}`);
  return [`${deployment.name} is ${deployment.status}`, ...parts].join(', ');
}
