import { describe, expect, test } from 'vitest';
import { databaseAllocationId, instanceAllocationIds } from '../../../src/domain/allocation/state.ts';
import { MOST_UNUSED } from '../../../src/domain/certificate/renew.ts';
import { revocations } from '../../../src/domain/certificate/revoke.ts';
import type { NewEvent } from '../../../src/domain/event/catalogue.ts';
import { MOST_DATABASES, MOST_HELD_JOBS, MOST_INSTANCES, MOST_OPEN_JOBS } from '../../../src/domain/node/limits.ts';
import { type Holdings, reclaim } from '../../../src/domain/node/reclaim.ts';
import type { NodeState } from '../../../src/domain/node/state.ts';
import { nodeStream } from '../../../src/domain/stream.ts';
import { GENESIS_HASH } from '../../../src/log/chain.ts';
import { seal } from '../../../src/log/codec.ts';
import { NODE, START } from '../../support/events.ts';
import { METADATA } from '../../support/given.ts';

const id = (kind: number, index: number) =>
  `${String(kind).padStart(8, '0')}-0000-4000-8000-${String(index).padStart(12, '0')}`;
const LONGEST_ROLE = `w${'o'.repeat(30)}e`;
const LONGEST_KIND = `k${'_'.repeat(40)}`;
const LONGEST_HOSTNAME = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(letter === 'd' ? 61 : 63)).join('.');

/** Rows as far as a reclamation reads them; names are as long as they may be. */
function everything(): Holdings {
  const rows = <T>(count: number, make: (index: number) => object) =>
    Array.from({ length: count }, (_, index) => make(index) as T);
  const instances = rows<Holdings['instances'][number]>(MOST_INSTANCES, (index) => {
    const named = { deployment_id: id(1, index), role: LONGEST_ROLE, slot: 1_000, generation: 999_998 };
    return { ...named, instance_id: `${id(1, index)}.${LONGEST_ROLE}.1000.999998`, status: 'ready' };
  });
  const databases = rows<Holdings['databases'][number]>(MOST_DATABASES, (index) => ({ database_id: id(2, index) }));
  const allocationIds = [
    ...instances.flatMap(({ instance_id }) => Object.values(instanceAllocationIds(instance_id))),
    ...databases.map(({ database_id }) => databaseAllocationId(database_id)),
  ];
  const builds = rows<Holdings['jobs'][number]>(MOST_HELD_JOBS, (index) => ({ job_id: id(5, index), kind: 'build' }));
  // An operator may fill the queue while a pass of the scheduler does.
  const waiting = rows<Holdings['jobs'][number]>(2 * MOST_OPEN_JOBS, (index) => ({
    job_id: id(3, index),
    kind: LONGEST_KIND,
  }));
  const deployments = [
    ...instances.map(({ deployment_id }) => ({ deployment_id, status: 'live' })),
    ...builds.map(({ job_id }, index) => ({ deployment_id: id(6, index), status: 'building', build_job_id: job_id })),
  ];
  return {
    jobs: [...waiting, ...builds],
    instances,
    successors: new Map(),
    allocations: rows(allocationIds.length, (index) => ({
      allocation_id: allocationIds[index],
      kind: 'deployment_role',
    })),
    databases,
    publishing: rows(MOST_OPEN_JOBS, (index) => ({
      deployment_id: id(4, index),
      hostname: LONGEST_HOSTNAME,
      generation: 999_999,
      node_id: NODE,
      failures: 999,
      relocation: true,
    })),
    deployments: new Map(deployments.map((one) => [one.deployment_id, one as never])),
  };
}

/** Who records it, with names as long as they come. */
const metadata = {
  ...METADATA,
  actor: {
    kind: 'scheduler',
    id: `scheduler@${'h'.repeat(63)}:4194304`,
    database_user: 'u'.repeat(63),
    client_address: 'fe80:1111:2222:3333:4444:5555:6666:7777',
  },
} as const;

describe('a node that has as much of everything as a node may have', () => {
  test.each(['node_lost', 'node_revoked'] as const)('%s: the log takes what is decided', (cause) => {
    const { taken, follow } = reclaim({ node_id: NODE } as NodeState, everything(), cause);
    const event: NewEvent['event'] =
      cause === 'node_lost'
        ? { type: 'node_lost', data: { node_id: NODE, silent_ms: 300_000, ...taken } }
        : { type: 'node_revoked', data: { node_id: NODE, ...taken } };
    const certificates = Array.from({ length: MOST_UNUSED + 2 }, (_, index) => index.toString(16).padStart(40, '0'));
    const revoked = revocations(NODE, certificates, 'operator').map((one) => ({
      stream: nodeStream(NODE),
      event: one,
    }));
    const events = [{ stream: nodeStream(NODE), event }, ...revoked, ...follow];
    expect(follow).toHaveLength(MOST_INSTANCES + MOST_OPEN_JOBS + MOST_HELD_JOBS + MOST_DATABASES);
    expect(() => seal({ position: 0, hash: GENESIS_HASH, at: 0 }, events, metadata, START)).not.toThrow();
  });
});
