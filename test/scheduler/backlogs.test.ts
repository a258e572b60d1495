import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MOST_INSTANCES, MOST_OPEN_JOBS } from '../../src/domain/node/limits.ts';
import { jobStream } from '../../src/domain/stream.ts';
import { runWorkloads } from '../../src/scheduler/workloads/workloads.ts';
import { make } from '../support/events.ts';
import { PassingFleet, WEB } from './support/passing-fleet.ts';

const INNER = { ...WEB, listens: false, serves_hostnames: false, readiness_path: null };
const TINY = { ...INNER, cpu_millis: 1, memory_mb: 1, disk_gb: 1 };
const WIDE = { cpu_millis: 10_000, memory_mb: 10_000, disk_gb: 10_000 };
/** Rows that a step reads at once in these tests: fewer than there are in the way. */
const PAGE = 2;

let fleet: PassingFleet;

beforeEach(async () => {
  fleet = await PassingFleet.start();
});
afterEach(() => fleet[Symbol.asyncDispose]());

/** Passes of few rows and agents in turn. */
async function rounds(count: number): Promise<void> {
  for (let round = 0; round < count; round += 1) {
    await fleet.workloads(fleet.led(), PAGE);
    await fleet.work();
  }
}

async function onNode(nodeId: string): Promise<number> {
  const { rows } = await fleet.database.pool.query<{ instances: number }>(
    'SELECT count(*)::integer AS instances FROM fleet.application_instances WHERE node_id = $1',
    [nodeId],
  );
  return rows[0]?.instances ?? 0;
}

describe('more than one page in the way', () => {
  test('instances for which there is no node: the one behind them is placed, and its deployment comes to life', async () => {
    await fleet.addNodes({});
    for (let i = 0; i < 3; i += 1) {
      await fleet.deploy({ name: `nowhere-${i}`, regions: ['nbg1'], hostnames: [], roles: [{ ...INNER, count: 2 }] });
    }
    const id = await fleet.deploy({ hostnames: [], roles: [INNER] });
    await rounds(2);
    expect(await fleet.status(id)).toBe('live');
  });

  test('hostnames for which there is no ingress: the one behind them is served', async () => {
    await fleet.addNodes({ ingress: true }, { region: 'nbg1' });
    for (let i = 0; i < 3; i += 1) {
      await fleet.deploy({ name: `hidden-${i}`, regions: ['nbg1'], hostnames: [`hidden-${i}.example.com`] });
    }
    await rounds(2);
    const id = await fleet.deploy({});
    await rounds(3);
    expect(await fleet.status(id)).toBe('live');
  });
});

describe('a node that has as much as a node may have', () => {
  test('of instances: the next one goes to another node, however much room is left', async () => {
    const [wide = ''] = await fleet.addNodes({ capacity: WIDE });
    await fleet.deploy({ name: 'crowd', hostnames: [], roles: [{ ...TINY, count: MOST_INSTANCES }] });
    await fleet.workloads();
    expect(await onNode(wide)).toBe(MOST_INSTANCES);
    // It would be filled more by the next one than the crowded one.
    const [other = ''] = await fleet.addNodes({ capacity: { cpu_millis: 20, memory_mb: 20, disk_gb: 20 } });
    const id = await fleet.deploy({ hostnames: [], roles: [TINY] });
    await fleet.workloads();
    expect(await fleet.nodeOf(id, 'web.0.1')).toBe(other);
  });

  test('of jobs: it is asked for no more until one of them is over', async () => {
    const [nodeId = ''] = await fleet.addNodes({});
    const jobIds = Array.from({ length: MOST_OPEN_JOBS }, () => randomUUID());
    const queued = jobIds.map((job_id) => make('job_queued', { job_id, node_id: nodeId }));
    await fleet.record(queued.map((event) => ({ stream: jobStream(event.data.job_id), event })));
    await fleet.deploy({ hostnames: [], roles: [INNER] });
    await fleet.workloads();
    expect(await fleet.instances()).toEqual(['web.0.1 reserved']);
    const [job_id = ''] = jobIds;
    const over = make('job_fenced', { job_id, node_id: nodeId, reason: 'not_needed' });
    await fleet.record([{ stream: jobStream(job_id), event: over }]);
    await fleet.workloads();
    expect(await fleet.instances()).toEqual(['web.0.1 deploying']);
  });
});

describe('what no agent would take', () => {
  test('an instance that may use no CPU: it fails alone, the one behind it comes to life', async () => {
    await fleet.addNodes({});
    await fleet.deploy({ name: 'powerless', hostnames: [], roles: [{ ...INNER, cpu_millis: 0 }] });
    const id = await fleet.deploy({ hostnames: [], roles: [INNER] });
    for (let round = 0; round < 2; round += 1) {
      const reports = await runWorkloads(fleet.database.pool, fleet.led());
      const reasons = reports.flatMap(({ failed }) => failed.map(({ error }) => String(error)));
      expect(reasons).toEqual([expect.stringContaining('cpu_millis: expected >=1')]);
      await fleet.work();
    }
    expect(await fleet.status(id)).toBe('live');
  });
});
