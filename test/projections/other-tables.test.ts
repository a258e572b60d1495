import { describe, expect, test } from 'vitest';
import { DISPOSABLE, projectionOf, TABLE_NAMES } from '../../projections/registry.ts';
import { EVENT_TYPES, type FleetEvent } from '../../src/domain/event/catalogue.ts';
import { JOB, make, NODE, START, sample } from '../support/events.ts';
import { fold } from './fold.ts';

describe('pool_firewalls', () => {
  const converged = sample.pool_firewall_converged;

  test('converged: what to, and when', () =>
    expect(fold('pool_firewalls', converged)).toEqual([{ ...converged.data, converged_at: START }]));

  test('converged again: the latest', () => {
    const again = make('pool_firewall_converged', { firewall_id: 100 });
    expect(fold('pool_firewalls', converged, again)).toEqual([{ ...again.data, converged_at: START + 1_000 }]);
  });
});

describe('fleet_events', () => {
  const written = {
    position: 1,
    at: START,
    stream: 'any',
    node_id: null,
    job_id: null,
    pool: null,
    actor_kind: 'operator',
    actor_id: 'ada@ops',
    authorises: false,
    offers_work: false,
  };

  test.each<[FleetEvent, object]>([
    [sample.node_enrolled, { node_id: NODE, authorises: true, offers_work: true }],
    [sample.certificates_revoked, { node_id: NODE, authorises: true }],
    [sample.node_provisioning_requested, { node_id: NODE, pool: 'application' }],
    [sample.job_queued, { node_id: NODE, job_id: JOB, offers_work: true }],
    [make('job_queued', { node_id: null, pool: 'build' }), { job_id: JOB, pool: 'build', offers_work: true }],
    [sample.job_completed, { node_id: NODE, job_id: JOB }],
    [sample.pool_firewall_converged, { pool: 'application' }],
    [sample.ca_rotation_refused, {}],
    [sample.ca_rotation_completed, { authorises: true }],
    [sample.certificate_conflict_seen, { node_id: NODE, authorises: true }],
    [sample.node_recovered, { node_id: NODE, authorises: true, offers_work: true }],
  ])('$type: whom it concerns, and what a gateway has to look at again', (event, concerned) =>
    expect(fold('fleet_events', event)).toEqual([{ ...written, ...event, ...concerned }]),
  );

  test('every type: one row an event', () =>
    expect(fold('fleet_events', ...EVENT_TYPES.map((type): FleetEvent => sample[type]))).toHaveLength(
      EVENT_TYPES.length,
    ));
});

describe('the registry', () => {
  test('what rebuild writes: the tables of schema fleet', () =>
    expect(DISPOSABLE).toEqual([
      'fleet_nodes',
      'fleet_node_certificates',
      'fleet_ca',
      'ca_rotations',
      'jobs',
      'pool_firewalls',
      'fleet_allocations',
      'node_loss_holds',
      'deployments',
      'application_instances',
      'network_attachment_requests',
      'ingress_routes',
      'database_instances',
      'fleet_events',
    ]));

  test('every table is registered under its own name', () =>
    expect(TABLE_NAMES.map((name) => projectionOf(name).table.name)).toEqual(TABLE_NAMES));

  test.each(['node_liveness', 'gateway_beacons', 'scheduler'] as const)('no event writes %s', (name) =>
    expect(projectionOf(name).handles).toEqual([]),
  );
});
