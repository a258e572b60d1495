import { describe, expect, test } from 'vitest';
import { FoldError } from '../../projections/projection.ts';
import { projectionOf, TABLE_NAMES, type TableName } from '../../projections/registry.ts';
import { EVENT_TYPES, type EventType, type FleetEvent } from '../../src/domain/event/catalogue.ts';
import { JOB, make, sample } from '../support/events.ts';
import { fold, recorded } from './fold.ts';

/** The one event that a row of each table begins with; the tables that are not here begin one, or end one that need not be there. */
const CREATES: Partial<Record<TableName, EventType>> = {
  fleet_nodes: 'node_provisioning_requested',
  fleet_node_certificates: 'certificate_authorized',
  fleet_ca: 'ca_initialized',
  ca_rotations: 'ca_rotation_begun',
  jobs: 'job_queued',
};

/** The samples of these name nothing in `jobs`. */
const NAMING_A_JOB: Partial<Record<EventType, FleetEvent>> = Object.fromEntries(
  (['node_lost', 'node_revoked'] as const).map((type) => [
    type,
    make(type, { fenced_jobs: [{ job_id: JOB, kind: 'diagnose_host' }] }),
  ]),
);

const tables = Object.entries(CREATES) as [TableName, EventType][];
const changes = tables.flatMap(([table, creation]) =>
  projectionOf(table)
    .handles.filter((type) => type !== creation)
    .map((type) => ({ table, event: NAMING_A_JOB[type] ?? sample[type] })),
);

describe('a log that cannot be true', () => {
  test.each(tables)('%s, %s twice: FoldError', (table, type) => {
    const folding = () => fold(table, sample[type], sample[type]);
    expect(folding).toThrow(FoldError);
    expect(folding).toThrow(`${table} at position 2 (${type})`);
  });

  test.each(changes)('$table, $event.type of a row that never was: FoldError', ({ table, event }) => {
    const folding = () => fold(table, event);
    expect(folding).toThrow(FoldError);
    expect(folding).toThrow(`${table} at position 1 (${event.type})`);
  });

  test('its cause: which row', () => {
    const [event] = recorded([sample.node_admitted]);
    const folding = () =>
      event && projectionOf('fleet_nodes').fold(undefined, event, sample.node_admitted.data.node_id);
    expect(folding).toThrow(
      expect.objectContaining({
        cause: expect.objectContaining({ message: `no row ${sample.node_admitted.data.node_id}` }),
      }),
    );
  });

  test('an event that does not touch the table: no keys, and FoldError when folded all the same', () => {
    const [event] = recorded([sample.job_queued]);
    if (event === undefined) throw new Error('nothing recorded');
    expect(projectionOf('fleet_nodes').keys(event)).toEqual([]);
    expect(() => projectionOf('fleet_nodes').fold(undefined, event, '')).toThrow(
      'fleet_nodes does not fold job_queued',
    );
  });
});

test('a refusal of a rotation that none is under way for: touches no rotation', () => {
  const [event] = recorded([make('ca_rotation_refused', { rotation_id: null })]);
  expect(event && projectionOf('ca_rotations').keys(event)).toEqual([]);
});

test('every event type touches a table besides fleet_events, but for those that are only history', () => {
  const touched = TABLE_NAMES.filter((name) => name !== 'fleet_events').map(projectionOf);
  expect(EVENT_TYPES.filter((type) => !touched.some(({ handles }) => handles.includes(type)))).toEqual([
    'gateway_certificate_issued',
    'log_checkpoint_signed',
  ]);
});
