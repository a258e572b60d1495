import { isDeepStrictEqual } from 'node:util';
import type pg from 'pg';
import type { Key } from '../../projections/projection.ts';
import { DISPOSABLE, projectionOf, type TableName } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import { readForFold, readHead } from '../log/postgres/reader.ts';
import { keyOf } from '../tables/rows.ts';
import { columnsOf, keyType, selectList } from '../tables/values.ts';
import { foldLog, type Progress } from './fold-log.ts';
import { FoldState } from './fold-state.ts';
import { readSnapshot } from './generation.ts';

const CHUNK = 1_000;

/** A row that is not what the log makes of it. `columns` names the ones that differ (all for a missing or unexpected row). */
export interface Difference {
  readonly table: TableName;
  readonly key: Key;
  readonly kind: 'differs' | 'missing' | 'unexpected';
  readonly columns: readonly string[];
}

/** What verification found, and the position it compared at last. */
export interface Verification {
  readonly position: number;
  readonly rows: number;
  readonly differences: readonly Difference[];
}

/** When to stop, and who is told how far it has come: `progress` while the log is folded, then `compared` of the rows so far. */
interface VerificationOptions {
  readonly maxDifferences?: number;
  readonly progress?: Progress;
  readonly compared?: (rows: number) => void;
}

/**
 * Folds the log again and compares every row with the live tables, while the fleet goes on. Each chunk of rows is read together with
 * the log's head in one short snapshot, and the fold is caught up to exactly that head before the two are compared, so no difference
 * is ever reported that was only a difference in time, and no long transaction is held.
 */
export async function verifyProjections(
  pool: pg.Pool,
  { maxDifferences = 100, progress, compared }: VerificationOptions = {},
): Promise<Verification> {
  const state = new FoldState(DISPOSABLE);
  await foldLog({ read: (page) => readForFold(pool, page) }, state, 'head', progress);
  const differences: Difference[] = [];
  let rows = 0;
  for (const table of DISPOSABLE) {
    const count = (more: number) => {
      rows += more;
      compared?.(rows);
    };
    for await (const difference of compareTable(pool, state, table, count)) {
      differences.push(difference);
      if (differences.length >= maxDifferences) return { position: state.position, rows, differences };
    }
  }
  return { position: state.position, rows, differences };
}

async function* compareTable(
  pool: pg.Pool,
  state: FoldState,
  table: TableName,
  compared: (rows: number) => void,
): AsyncGenerator<Difference> {
  const unseen = new Set(state.rows(table).keys());
  let after: Key | undefined;
  for (;;) {
    const live = await liveRows(pool, state, table, after === undefined ? {} : { after });
    for (const row of live) {
      const key = keyOf(table, row);
      unseen.delete(key);
      const difference = compareRow(table, key, state.rows(table).get(key), row);
      if (difference !== undefined) yield difference;
    }
    compared(live.length);
    const last = live.at(-1);
    if (last === undefined || live.length < CHUNK) break;
    after = keyOf(table, last);
  }
  for (const key of unseen) {
    const [row] = await liveRows(pool, state, table, { key });
    const difference = compareRow(table, key, state.rows(table).get(key), row);
    if (difference !== undefined) yield difference;
  }
}

/** Rows and the head of the same snapshot; the fold has reached that head when this returns. */
async function liveRows(
  pool: pg.Pool,
  state: FoldState,
  name: TableName,
  which: { after?: Key; key?: Key },
): Promise<Row[]> {
  const { table } = projectionOf(name);
  const type = keyType(table);
  const { head, rows } = await readSnapshot(pool, async (client) => ({
    head: await readHead(client),
    rows: await client.query<Row>(
      `SELECT ${selectList(table)} FROM ${table.schema}.${table.name}
       WHERE ($1::${type} IS NULL OR ${table.key} > $1::${type}) AND ($2::${type} IS NULL OR ${table.key} = $2::${type})
       ORDER BY ${table.key} LIMIT ${CHUNK}`,
      [which.after ?? null, which.key ?? null],
    ),
  }));
  await foldLog({ read: (page) => readForFold(pool, page) }, state, { position: head.position });
  return rows.rows;
}

function compareRow(
  table: TableName,
  key: Key,
  folded: Row | undefined,
  live: Row | undefined,
): Difference | undefined {
  const columns = columnsOf(projectionOf(table).table).map(([column]) => column);
  if (live === undefined) return folded === undefined ? undefined : { table, key, kind: 'missing', columns };
  if (folded === undefined) return { table, key, kind: 'unexpected', columns };
  const before: Record<string, unknown> = { ...folded };
  const after: Record<string, unknown> = { ...live };
  const different = columns.filter((column) => !isDeepStrictEqual(before[column], after[column]));
  return different.length === 0 ? undefined : { table, key, kind: 'differs', columns: different };
}
