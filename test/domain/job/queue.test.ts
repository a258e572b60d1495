import { describe, expect, test } from 'vitest';
import { queueJobCommand } from '../../../src/commands/job.ts';
import { MOST_OPEN_JOBS } from '../../../src/domain/node/limits.ts';
import { digest, JOB, make, NODE, sample } from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const node = sample.node_provisioning_requested;
const job = { ...sample.job_queued.data, payload: '{"checks":["dns"]}' };
const forPool = { ...job, node_id: null, pool: 'build' } as const;

describe('a job is queued', () => {
  test('for a node: job_queued, without the payload', async () =>
    expect(await given(node).when(queueJobCommand, job)).toEqual([sample.job_queued]));

  test('the payload: a body outside the log', async () =>
    expect(await given(node).bodies(queueJobCommand, job)).toEqual([
      { jobId: JOB, role: 'payload', sha256: job.payload_sha256, text: '{"checks":["dns"]}' },
    ]));

  test('its id: told', async () => expect(await given(node).reply(queueJobCommand, job)).toEqual({ job_id: JOB }));

  test('for a pool that has no node yet: job_queued', async () =>
    expect(await given().when(queueJobCommand, forPool)).toEqual([
      make('job_queued', { node_id: null, pool: 'build' }),
    ]));

  test('repeated: no new event, no body, told its id', async () => {
    const queued = given(node, sample.job_queued);
    expect(await queued.when(queueJobCommand, job)).toEqual([]);
    expect(await queued.bodies(queueJobCommand, job)).toEqual([]);
    expect(await queued.reply(queueJobCommand, job)).toEqual({ job_id: JOB });
  });

  test('repeated after it completed: no new event', async () =>
    expect(
      await given(node, sample.job_queued, sample.job_leased, sample.job_completed).when(queueJobCommand, job),
    ).toEqual([]));

  test.each([
    { payload_sha256: digest('b0d9') },
    { kind: 'other_kind' },
    { node_id: null, pool: 'build' },
    { max_attempts: 2 },
    { org_id: NODE },
  ] as const)('same id, other %o: refused', async (difference) =>
    expect(await given(node, sample.job_queued).when(queueJobCommand, { ...job, ...difference })).toEqual(
      refusal('job_exists', { job_id: JOB }),
    ),
  );

  test.each([
    ['both a node and a pool', { ...job, pool: 'build' as const }],
    ['neither', { ...job, node_id: null }],
  ])('for %s: refused', async (_, unclear) =>
    expect(await given(node).when(queueJobCommand, unclear)).toEqual(refusal('job_target_unclear', { job_id: JOB })),
  );

  test('for a node that so many wait for that a loss could not name them all: refused', async () => {
    const others = Array.from({ length: MOST_OPEN_JOBS }, (_, i) =>
      make('job_queued', { job_id: `20000000-0000-4000-8000-${String(i + 100).padStart(12, '0')}` }),
    );
    expect(await given(node, ...others).when(queueJobCommand, job)).toEqual(
      refusal('node_queue_full', { node_id: NODE, jobs: MOST_OPEN_JOBS }),
    );
    expect(await given(node, ...others.slice(1)).when(queueJobCommand, job)).toEqual([sample.job_queued]);
  });

  test('for an unknown node: refused', async () =>
    expect(await given().when(queueJobCommand, job)).toEqual(refusal('node_unknown', { node: NODE })));
});
