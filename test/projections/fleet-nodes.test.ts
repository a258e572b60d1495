import { describe, expect, test } from 'vitest';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import {
  admitted,
  CA,
  enrolled,
  make,
  NEW_CA,
  NODE,
  provisioned,
  SECOND_SECRET,
  SECOND_SERIAL,
  SECRET,
  START,
  sample,
} from '../support/events.ts';
import { fold } from './fold.ts';

const requested = sample.node_provisioning_requested;
const fresh = {
  ...requested.data,
  status: 'provisioning',
  schedulable: false,
  provision_state: 'pending',
  failure_reason: null,
  armed_secrets: [],
  server_id: null,
  location: null,
  public_ipv4: null,
  public_ipv6: null,
  private_ipv4: null,
  cpu_millis: null,
  memory_mb: null,
  disk_gb: null,
  architecture: null,
  host_cpu_count: null,
  host_memory_mb: null,
  host_kernel: null,
  host_docker_version: null,
  host_bridge_netfilter: null,
  agent_version: null,
  runtime: null,
  ingress: null,
  host_facts_at: null,
  conflict: null,
  requested_at: START,
  enrolled_at: null,
  admitted_at: null,
  mesh_coordinator: false,
  subnet_slots_used: 0,
  drain: null,
  reclamation: null,
  retired_at: null,
};
const renewal = { cause: 'renewal', secret_sha256: null, secret_expires_at: null } as const;
const first = { sha256: SECRET, expires_at: sample.node_enrollment_secret_armed.data.expires_at, ca_sha256s: [] };
const awaiting = {
  ...fresh,
  provision_state: 'awaiting_enrollment',
  armed_secrets: [first],
  server_id: 4711,
  location: 'fsn1',
  public_ipv4: '203.0.113.7',
  public_ipv6: '2001:db8:7::/64',
  cpu_millis: 3_500,
  memory_mb: 7_168,
  disk_gb: 70,
  architecture: 'x86',
};
const drain = {
  migrate: false,
  max_in_flight: null,
  deadline_at: null,
  started_at: START + 9_000,
  overdue_at: null,
};
const reclamation = {
  silent_ms: 300_000,
  at: START + 9_000,
  fenced_jobs: [],
  lost_instance_ids: [],
  unplaced_instance_ids: [],
  replacement_instance_ids: [],
  released_allocations: 0,
  stranded_database_ids: [],
};
const active = {
  ...awaiting,
  armed_secrets: [],
  status: 'active',
  provision_state: 'enrolled',
  enrolled_at: START + 7_000,
};

describe('fleet_nodes', () => {
  test('requested: pending, everything else unknown', () => expect(fold('fleet_nodes', requested)).toEqual([fresh]));

  test('capacity recorded: capacity', () =>
    expect(fold('fleet_nodes', requested, sample.node_capacity_recorded)).toEqual([
      { ...fresh, cpu_millis: 3_500, memory_mb: 7_168, disk_gb: 70, architecture: 'x86' },
    ]));

  test('secrets armed: all of them, the oldest first', () =>
    expect(
      fold(
        'fleet_nodes',
        requested,
        sample.node_enrollment_secret_armed,
        make('node_enrollment_secret_armed', { secret_sha256: SECOND_SECRET, ca_sha256s: [NEW_CA, CA] }),
      ),
    ).toEqual([{ ...fresh, armed_secrets: [first, { ...first, sha256: SECOND_SECRET, ca_sha256s: [NEW_CA, CA] }] }]));

  test.each([sample.node_server_requested, sample.node_server_adopted])('$type: has that server', (event) =>
    expect(fold('fleet_nodes', requested, event)).toEqual([
      { ...fresh, provision_state: 'server_requested', server_id: event.data.server_id },
    ]),
  );

  test('server runs: awaits enrolment, with what the provider says', () =>
    expect(fold('fleet_nodes', ...provisioned)).toEqual([awaiting]));

  test('server runs as another type than was asked for: what the provider says', () =>
    expect(fold('fleet_nodes', ...provisioned, make('node_server_running', { server_type: 'cx43' }))).toEqual([
      { ...awaiting, server_type: 'cx43' },
    ]));

  test('a secret is redeemed: all are disarmed', () =>
    expect(fold('fleet_nodes', ...provisioned, sample.certificate_authorized)).toEqual([
      { ...awaiting, armed_secrets: [] },
    ]));

  test('renewed: a secret that is armed stays so', () =>
    expect(
      fold(
        'fleet_nodes',
        ...enrolled,
        sample.node_enrollment_secret_armed,
        make('certificate_authorized', { certificate_id: SECOND_SERIAL, ...renewal }),
      ),
    ).toEqual([{ ...active, armed_secrets: [first] }]));

  test('enrolled: active, not schedulable', () => expect(fold('fleet_nodes', ...enrolled)).toEqual([active]));

  test('server runs, known only after it enrolled: stays enrolled', () =>
    expect(fold('fleet_nodes', ...enrolled, sample.node_server_running)).toEqual([active]));

  test('admitted: schedulable', () =>
    expect(fold('fleet_nodes', ...enrolled, sample.node_admitted)).toEqual([
      { ...active, schedulable: true, admitted_at: START + 8_000 },
    ]));

  const { boot_ids, addresses } = sample.certificate_conflict_seen.data;
  const conflict = { boot_ids, addresses, seen_at: START + 8_000 };

  test('two hosts use its identity: which, and when', () =>
    expect(fold('fleet_nodes', ...enrolled, sample.certificate_conflict_seen)).toEqual([{ ...active, conflict }]));

  test('renewed after that: the conflict is still shown', () => {
    const renewed = make('certificate_authorized', { certificate_id: SECOND_SERIAL, ...renewal });
    expect(fold('fleet_nodes', ...enrolled, sample.certificate_conflict_seen, renewed)).toEqual([
      { ...active, conflict },
    ]);
  });

  test('enrolled anew after that: no conflict any more', () => {
    const anew = make('certificate_authorized', { certificate_id: SECOND_SERIAL, cause: 'reenrollment' });
    expect(fold('fleet_nodes', ...enrolled, sample.certificate_conflict_seen, anew)).toEqual([active]);
  });

  test.each<[FleetEvent, object]>([
    [sample.node_became_unhealthy, { status: 'unhealthy', schedulable: true }],
    [sample.node_drain_started, { status: 'draining', schedulable: false, drain }],
    [sample.node_taken_offline, { status: 'offline', schedulable: true }],
    [sample.node_lost, { status: 'lost', schedulable: false, reclamation }],
    [sample.node_revoked, { status: 'revoked', schedulable: false, reclamation: { ...reclamation, silent_ms: null } }],
    [sample.node_retired, { status: 'retired', schedulable: false, retired_at: START + 9_000 }],
  ])('$type: $status', (event, change) =>
    expect(fold('fleet_nodes', ...admitted, event)).toEqual([{ ...active, admitted_at: START + 8_000, ...change }]),
  );

  test('recovered: active again', () =>
    expect(fold('fleet_nodes', ...admitted, sample.node_became_unhealthy, sample.node_recovered)).toEqual([
      { ...active, schedulable: true, admitted_at: START + 8_000 },
    ]));

  test('drained, and past its deadline: since when', () => {
    const [node] = fold('fleet_nodes', ...admitted, sample.node_drain_started, sample.node_drain_overdue);
    expect(node?.drain).toEqual({ ...drain, overdue_at: START + 10_000 });
  });

  test('drained, and that was cancelled: as before', () =>
    expect(fold('fleet_nodes', ...admitted, sample.node_drain_started, sample.node_drain_cancelled)).toEqual([
      { ...active, schedulable: true, admitted_at: START + 8_000 },
    ]));

  test('drained before it was admitted, and that was cancelled: not schedulable', () => {
    const [node] = fold('fleet_nodes', ...enrolled, sample.node_drain_started, sample.node_drain_cancelled);
    expect([node?.status, node?.schedulable]).toEqual(['active', false]);
  });

  test('lost, then revoked: what was taken when it was lost stays', () => {
    const [node] = fold('fleet_nodes', ...admitted, sample.node_lost, sample.node_revoked);
    expect([node?.status, node?.reclamation]).toEqual(['revoked', reclamation]);
  });

  test('made a mesh coordinator: it is one', () => {
    const [node] = fold('fleet_nodes', ...admitted, sample.node_mesh_coordinator_set);
    expect(node?.mesh_coordinator).toBe(true);
  });

  test('instances placed on it: so many slots of its subnet are used up, whatever is taken away', () => {
    const later = make('instance_placed', { subnet_slot: 4 });
    const [node] = fold('fleet_nodes', ...admitted, later, sample.instance_placed, sample.instance_removed);
    expect(node?.subnet_slots_used).toBe(5);
  });

  test('retired: its secrets are disarmed', () =>
    expect(fold('fleet_nodes', ...enrolled, sample.node_enrollment_secret_armed, sample.node_retired)).toEqual([
      { ...active, status: 'retired', retired_at: START + 9_000 },
    ]));

  test.each([sample.node_became_unhealthy, sample.node_drain_started, sample.node_lost, sample.node_retired])(
    'server runs, known only after $type: stays enrolled',
    (event) =>
      expect(fold('fleet_nodes', ...enrolled, event, sample.node_server_running)).toMatchObject([
        { provision_state: 'enrolled' },
      ]),
  );

  test('host facts: with when', () =>
    expect(fold('fleet_nodes', ...enrolled, sample.node_host_facts_changed)).toEqual([
      {
        ...active,
        host_cpu_count: 4,
        host_memory_mb: 7_750,
        host_kernel: '6.12.48+deb13-amd64',
        host_docker_version: '28.5.1',
        host_bridge_netfilter: true,
        agent_version: '0.1.0',
        host_facts_at: START + 8_000,
      },
    ]));

  test('failed: why, and no secret is armed any more', () =>
    expect(fold('fleet_nodes', ...provisioned, sample.node_provisioning_failed)).toEqual([
      { ...awaiting, provision_state: 'failed', failure_reason: 'enrollment_secret_expired', armed_secrets: [] },
    ]));

  test.each([sample.node_server_requested, sample.node_server_adopted, sample.node_server_running])(
    'failed, then $type: stays failed',
    (event) =>
      expect(fold('fleet_nodes', ...provisioned, sample.node_provisioning_failed, event)).toMatchObject([
        { provision_state: 'failed', server_id: event.data.server_id },
      ]),
  );

  test('retried: pending again, its server is still known', () =>
    expect(
      fold('fleet_nodes', ...provisioned, sample.node_provisioning_failed, sample.node_provisioning_retried),
    ).toEqual([{ ...awaiting, provision_state: 'pending', armed_secrets: [] }]));

  test('server deleted: neither server nor addresses', () =>
    expect(fold('fleet_nodes', ...provisioned, sample.node_server_deleted)).toEqual([
      { ...awaiting, server_id: null, public_ipv4: null, public_ipv6: null, private_ipv4: null },
    ]));

  test("another node's events: leave it alone", () => {
    const other = make('node_provisioning_requested', { node_id: 'b', name: 'b' });
    expect(fold('fleet_nodes', requested, other, make('node_admitted', { node_id: 'b' }))[0]).toEqual(fresh);
    expect(fresh.node_id).toBe(NODE);
  });
});
