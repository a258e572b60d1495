import { describe, expect, test } from 'vitest';
import type { Projection } from '../../projections/projection.ts';
import { DISPOSABLE, projectionOf, type TableName } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import type { EventType } from '../../src/domain/event/catalogue.ts';
import type { RecordedEvent } from '../../src/domain/event/recorded.ts';
import { DEFINITION_DIGEST, definitionDigest } from '../../src/projector/digest.ts';

const all = DISPOSABLE.map(projectionOf);

/** The digest with one table's projection changed. */
function digestWith(name: TableName, changes: Partial<Projection<Row>>): string {
  return definitionDigest(DISPOSABLE.map((table) => ({ ...projectionOf(table), ...(table === name ? changes : {}) })));
}

/** The digest with a fold that does something else where `applies`. */
function digestWithFold(
  name: TableName,
  applies: (row: Row | undefined, event: RecordedEvent) => boolean,
  change: (after: Row) => Row,
): string {
  const projection = projectionOf(name);
  return digestWith(name, {
    fold(row, event, key) {
      const after = projection.fold(row, event, key);
      return after !== null && applies(row, event) ? change(after) : after;
    },
  });
}

const handled = DISPOSABLE.flatMap((name) =>
  projectionOf(name).handles.map((type): [TableName, EventType] => [name, type]),
);

describe('the digest of the definitions', () => {
  test('asked again: the same', () => expect(definitionDigest(all)).toBe(DEFINITION_DIGEST));

  test.each(handled)('%s folds %s otherwise: another one', (name, type) => {
    const [column] = Object.keys(projectionOf(name).table.columns).slice(-1);
    const changed = digestWithFold(
      name,
      (_, event) => event.type === type,
      (after) => ({ ...after, [String(column)]: 'otherwise' }),
    );
    expect(changed).not.toBe(DEFINITION_DIGEST);
  });

  test('a fold that changes only after a certain other event: another one', () =>
    expect(
      digestWithFold(
        'fleet_nodes',
        (row, event) =>
          event.type === 'node_server_running' && row !== undefined && Object.values(row).includes('failed'),
        (after) => ({ ...after, provision_state: 'awaiting_enrollment' }),
      ),
    ).not.toBe(DEFINITION_DIGEST));

  test('a fold that changes only for one value of a field: another one', () =>
    expect(
      digestWithFold(
        'jobs',
        (_, event) => event.type === 'job_leased' && event.data.reissued,
        (after) => ({ ...after, leased_at: 0 }),
      ),
    ).not.toBe(DEFINITION_DIGEST));

  test('an event touches another row: another one', () =>
    expect(digestWith('jobs', { keys: () => ['another'] })).not.toBe(DEFINITION_DIGEST));

  test('a table has another index: another one', () => {
    const { table } = projectionOf('jobs');
    expect(digestWith('jobs', { table: { ...table, indexes: table.indexes.slice(1) } })).not.toBe(DEFINITION_DIGEST);
  });
});
