import { describe, expect, test } from 'vitest';
import { completeJobCommand, leaseJobCommand } from '../../../src/commands/job.ts';
import { freezeLossesCommand, thawLossesCommand } from '../../../src/commands/loss.ts';
import { recoverNodeCommand, sweepNodeCommand } from '../../../src/commands/sweep.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import {
  admitted,
  FINGERPRINT,
  JOB,
  make,
  NODE,
  OTHER_REQUEST,
  OTHER_TOKEN,
  sample,
  TOKEN,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const UNHEALTHY_MS = 90_000;
const LOST_MS = 300_000;
const sweep = { node_id: NODE, unhealthy_after_ms: UNHEALTHY_MS, lost_after_ms: LOST_MS };
const { instance_id } = sample.instance_placed.data;
const { database_id } = sample.database_instance_created.data;
const deployed = [...admitted, sample.deployment_created, sample.instance_requested, sample.instance_placed];
const running = [...deployed, sample.network_admitted, sample.instance_ready, sample.deployment_became_live];
const route = { node_id: NODE };

/** What the sweep decides about the node after this history, silent for as long as it takes. */
const lose = (...history: readonly FleetEvent[]) =>
  given(...history)
    .silentFor(NODE, LOST_MS)
    .when(sweepNodeCommand, sweep);

/** The node's one event of it. */
async function lossOf(...history: readonly FleetEvent[]) {
  const decided = await lose(...history);
  const [first] = Array.isArray(decided) ? (decided as FleetEvent[]) : [];
  return first?.type === 'node_lost' ? first.data : undefined;
}

describe('a silent node', () => {
  const at = (ms: number, ...history: readonly FleetEvent[]) =>
    given(...history)
      .silentFor(NODE, ms)
      .when(sweepNodeCommand, sweep);

  test('for less than 90 s: no event', async () => expect(await at(UNHEALTHY_MS - 1, ...admitted)).toEqual([]));

  test('for 90 s: unhealthy, and it keeps what it has', async () =>
    expect(await at(UNHEALTHY_MS, ...running)).toEqual([sample.node_became_unhealthy]));

  test('unhealthy already: no event', async () =>
    expect(await at(UNHEALTHY_MS, ...admitted, sample.node_became_unhealthy)).toEqual([]));

  test('draining, for 90 s: no event', async () =>
    expect(await at(UNHEALTHY_MS, ...admitted, sample.node_drain_started)).toEqual([]));

  test('just under the threshold: not lost', async () =>
    expect(await at(LOST_MS - 1, ...admitted, sample.node_became_unhealthy)).toEqual([]));

  test('of which nothing is known: no event', async () =>
    expect(await given(...admitted).when(sweepNodeCommand, sweep)).toEqual([]));

  test.each([
    ['offline', [...admitted, sample.node_drain_started, sample.node_taken_offline]],
    ['retired', [...admitted, sample.node_retired]],
    ['revoked', [...admitted, sample.node_revoked]],
  ])('%s: no event', async (_, history) => expect(await lose(...history)).toEqual([]));

  test('a mesh coordinator: unhealthy, never lost', async () => {
    const coordinator = [...admitted, sample.node_mesh_coordinator_set];
    expect(await lose(...coordinator)).toEqual([make('node_became_unhealthy', { silent_ms: LOST_MS })]);
    expect(await lose(...coordinator, sample.node_became_unhealthy)).toEqual([]);
  });

  test('unhealthy, and asks for work: well again', async () =>
    expect(
      await given(...admitted, sample.node_became_unhealthy).when(recoverNodeCommand, { fingerprint: FINGERPRINT }),
    ).toEqual([sample.node_recovered]));

  test('well, and asks for work: no event', async () =>
    expect(await given(...admitted).when(recoverNodeCommand, { fingerprint: FINGERPRINT })).toEqual([]));
});

describe('the eight effects of a loss', () => {
  test('1. the node is lost, in one event, whatever it was; once', async () => {
    for (const before of [[], [sample.node_became_unhealthy], [sample.node_drain_started]]) {
      expect(await lose(...admitted, ...before)).toEqual([sample.node_lost]);
    }
    expect(await lose(...admitted, sample.node_lost)).toEqual([]);
  });

  test('2. its jobs are fenced, waiting or begun: none is done by it any more, and none is given to another', async () => {
    const leased = [...admitted, sample.job_queued, sample.job_leased];
    expect((await lossOf(...leased))?.fenced_jobs).toEqual([{ job_id: JOB, kind: 'diagnose_host' }]);
    expect((await lossOf(...admitted, sample.job_queued))?.fenced_jobs).toHaveLength(1);
    const lost = given(...leased).silentFor(NODE, LOST_MS);
    await lost.when(sweepNodeCommand, sweep);
    const completion = {
      fingerprint: FINGERPRINT,
      job_id: JOB,
      token_sha256: TOKEN,
      outcome: 'succeeded',
      result: '{}',
      result_sha256: sample.job_completed.data.result_sha256,
      report: { kind: 'other' },
    } as const;
    expect(await lost.when(completeJobCommand, completion)).toEqual(refusal('lease_conflict'));
    const request = { request_id: OTHER_REQUEST, token_sha256: OTHER_TOKEN, kinds: ['diagnose_host'], lease_ms: 1_000 };
    expect(await lost.when(leaseJobCommand, { fingerprint: FINGERPRINT, ...request })).toEqual(
      refusal('node_not_active', { status: 'lost' }),
    );
  });

  test('3. a build that was not published fails its deployment; a route on its way fails, which costs it no attempt', async () => {
    const build = { source_sha256: '5c'.repeat(32), source_bytes: 10, command: ['make'], timeout_seconds: 60 };
    const building = [
      ...admitted,
      make('deployment_created', { build, build_job_id: JOB }),
      make('job_queued', { kind: 'build', node_id: null, pool: 'application' }),
      sample.job_leased,
    ];
    expect(await lose(...building)).toEqual([
      make('node_lost', { fenced_jobs: [{ job_id: JOB, kind: 'build' }] }),
      make('deployment_failed', { reason: 'build_failed', code: 'node_lost' }),
    ]);
    const publishing = [...admitted, sample.deployment_created, make('ingress_route_published', route)];
    expect(await lose(...publishing)).toEqual([
      sample.node_lost,
      make('ingress_route_failed', { ...route, reason: 'node_lost', failures: 0 }),
    ]);
  });

  test('4. instances that were begun are lost for good; one that only had a place waits for another', async () => {
    expect(await lossOf(...running)).toMatchObject({ lost_instance_ids: [instance_id], unplaced_instance_ids: [] });
    expect(await lossOf(...deployed)).toMatchObject({ lost_instance_ids: [], unplaced_instance_ids: [instance_id] });
  });

  test('5. what they held is free again; slots of its subnet stay used', async () => {
    expect((await lossOf(...running))?.released_allocation_ids).toEqual([
      `${instance_id}/network`,
      `${instance_id}/role`,
    ]);
    const lost = given(...running).silentFor(NODE, LOST_MS);
    await lost.when(sweepNodeCommand, sweep);
    expect(await lost.row('fleet_nodes', NODE)).toMatchObject({ status: 'lost', subnet_slots_used: 1 });
  });

  test('6. each lost instance of a deployment that goes on is replaced, one generation later; of one that ends, none', async () => {
    const replacement = sample.instance_replacement_queued;
    const decided = await lose(...running);
    expect(Array.isArray(decided) && decided.slice(1)).toEqual([replacement]);
    expect(await lossOf(...running, sample.deployment_removal_requested)).toMatchObject({
      lost_instance_ids: [instance_id],
      replacement_instance_ids: [],
    });
  });

  test('7. a live deployment stays live: nothing but the loss and the replacement is told of it', async () => {
    const lost = given(...running).silentFor(NODE, LOST_MS);
    await lost.when(sweepNodeCommand, sweep);
    expect(await lost.row('deployments', sample.deployment_created.data.deployment_id)).toMatchObject({
      status: 'live',
    });
  });

  test('8. its databases are stranded with what they hold: nothing of them moves', async () => {
    const holding = [...admitted, sample.database_instance_created, sample.database_instance_ready];
    expect(await lose(...holding)).toEqual([
      make('node_lost', { stranded_database_ids: [database_id] }),
      sample.database_instance_stranded,
    ]);
    const lost = given(...holding).silentFor(NODE, LOST_MS);
    await lost.when(sweepNodeCommand, sweep);
    expect(await lost.row('fleet_allocations', `${database_id}/database`)).toMatchObject({
      node_id: NODE,
      released_at: null,
    });
  });
});

describe('a loss that is kept back', () => {
  const held = [...admitted, sample.node_became_unhealthy, sample.node_loss_held];

  test('its pool is held: refused; released by an operator: lost', async () => {
    expect(await lose(...held)).toEqual(refusal('losses_held', { node_id: NODE, pool: 'application', silent: 1 }));
    expect(await lose(...held, sample.node_loss_released)).toEqual([sample.node_lost]);
  });

  test('all losses are frozen: refused; thawed: lost', async () => {
    const frozen = [...admitted, sample.node_became_unhealthy, sample.node_losses_frozen];
    expect(await lose(...frozen)).toEqual(refusal('losses_frozen', { node_id: NODE }));
    expect(await lose(...frozen, sample.node_losses_thawed)).toEqual([sample.node_lost]);
  });

  test('frozen and thawed by command; each repeated: no new event', async () => {
    expect(await given().when(freezeLossesCommand, {})).toEqual([sample.node_losses_frozen]);
    expect(await given(sample.node_losses_frozen).when(freezeLossesCommand, {})).toEqual([]);
    expect(await given(sample.node_losses_frozen).when(thawLossesCommand, {})).toEqual([sample.node_losses_thawed]);
    expect(await given().when(thawLossesCommand, {})).toEqual([]);
  });
});
