import type { Key } from '../../projections/projection.ts';
import { projectionOf, type RowOf, TABLE_NAMES, type TableName } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import type { GatewayBeacon } from '../../src/domain/ca/state.ts';
import type { RecordedEvent } from '../../src/domain/event/recorded.ts';
import type { LeaseGuard, StoredPayload } from '../../src/domain/job/state.ts';
import type { NodeLiveness } from '../../src/domain/node/state.ts';
import type { SchedulerState } from '../../src/domain/scheduler/state.ts';
import { FoldState } from '../../src/projector/fold-state.ts';
import { type AnyFinder, answerOf, type Finder, type FinderArguments, matches } from '../../src/transactor/find.ts';
import * as finders from '../../src/transactor/finders.ts';
import type { Rows } from '../../src/transactor/row-view.ts';

const ALL_FINDERS: readonly AnyFinder[] = Object.values(finders);

/** Keys of the rows that agree in a finder's compared columns. */
interface Index {
  readonly groups: Map<string, Set<Key>>;
  readonly groupOf: Map<Key, string>;
}

/**
 * What commands are decided on, without a database: the real folds in memory, looked up by the real finders. Telemetry, which no event
 * writes, is laid over the folds. Each finder has an index, so that histories of a million events are feasible.
 */
export class MemoryRows implements Rows {
  readonly #state: FoldState;
  readonly #telemetry = new Map<string, Row | undefined>();
  readonly #indexes = new Map<AnyFinder, Index>(
    ALL_FINDERS.map((find) => [find, { groups: new Map(), groupOf: new Map() }]),
  );

  constructor() {
    this.#state = new FoldState(TABLE_NAMES, () => undefined);
  }

  /** Folds an event into every table. Throws FoldError. */
  apply(event: RecordedEvent): void {
    this.#state.apply(event);
    for (const [find, index] of this.#indexes) {
      for (const key of projectionOf(find.table).keys(event)) this.#reindex(find, index, key);
    }
    for (const key of projectionOf('job_leases').keys(event)) this.#telemetry.delete(`job_leases ${key}`);
  }

  /** A gateway writes when it heard a node, without an event. */
  putLiveness(row: NodeLiveness): void {
    this.#telemetry.set(`node_liveness ${row.node_id}`, row);
  }

  /** A heartbeat extends a lease, without an event. */
  putLease(row: LeaseGuard): void {
    this.#telemetry.set(`job_leases ${row.job_id}`, row);
  }

  /** Somebody writes a body, without an event. */
  putPayload(row: StoredPayload): void {
    this.#telemetry.set(`job_payloads ${row.job_id}`, row);
  }

  /** A gateway says what it trusts, without an event. */
  putBeacon(row: GatewayBeacon): void {
    this.#telemetry.set(`gateway_beacons ${row.program}`, row);
  }

  /** The scheduler that leads writes its clock, without an event. */
  putScheduler(row: SchedulerState): void {
    this.#telemetry.set(`scheduler ${row.id}`, row);
  }

  /** Loses a row of telemetry. */
  remove(table: 'node_liveness' | 'job_leases' | 'job_payloads', key: string): void {
    this.#telemetry.set(`${table} ${key}`, undefined);
  }

  get<T extends TableName>(table: T, key: string): Promise<RowOf<T> | undefined> {
    const overlaid = `${table} ${key}`;
    const row = this.#telemetry.has(overlaid) ? this.#telemetry.get(overlaid) : this.#state.rows(table).get(key);
    return Promise.resolve(row as RowOf<T> | undefined);
  }

  async find<T extends TableName>(find: Finder<T>, args: FinderArguments): Promise<RowOf<T>[]> {
    const index = this.#indexes.get(find);
    if (index === undefined) throw new Error(`finder ${find.name} is not exported by src/transactor/finders.ts`);
    const rows = this.#state.rows(find.table);
    const group = index.groups.get(groupAskedFor(find, args)) ?? [];
    const told = [...this.#telemetry].flatMap(([key, row]) => (key.startsWith(`${find.table} `) ? (row ?? []) : []));
    const folded = [...group].flatMap((key) => rows.get(key) ?? []);
    const found = [...folded, ...(told as RowOf<T>[])].filter((row) => matches(find, row, args));
    return answerOf(find, found);
  }

  /** All rows of a folded table. */
  rows<T extends TableName>(table: T): ReadonlyMap<Key, RowOf<T>> {
    return this.#state.rows(table);
  }

  #reindex(find: AnyFinder, { groups, groupOf }: Index, key: Key): void {
    const row = this.#state.rows(find.table).get(key);
    const [before, after] = [groupOf.get(key), row === undefined ? undefined : groupHolding(find, row)];
    if (before === after) return;
    if (before !== undefined) groups.get(before)?.delete(key);
    if (after === undefined) {
      groupOf.delete(key);
    } else {
      groupOf.set(key, after);
      const group = groups.get(after);
      if (group === undefined) groups.set(after, new Set([key]));
      else group.add(key);
    }
  }
}

/** Columns that a finder compares with one value; `anyOf` is left to `matches`. */
function groupHolding(find: AnyFinder, row: Row): string {
  const values: Readonly<Record<string, unknown>> = { ...row };
  const compared = Object.entries(find.where).filter(([, condition]) => !('anyOf' in condition));
  return JSON.stringify(compared.map(([column]) => values[column]));
}

function groupAskedFor(find: AnyFinder, args: FinderArguments): string {
  const values = Object.values(find.where).flatMap((condition) => {
    if ('anyOf' in condition) return [];
    return ['is' in condition ? condition.is : args[condition.argument]];
  });
  return JSON.stringify(values);
}
