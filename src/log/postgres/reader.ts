import type pg from 'pg';
import type { RecordedEvent } from '../../domain/event/recorded.ts';
import { GENESIS_HASH } from '../chain.ts';
import { unseal } from '../codec.ts';
import type { LogHead, PageRequest, StoredEvent } from '../event-log.ts';

/** What a query can be sent to: a pool or a connection. */
export type Queryable = Pick<pg.ClientBase, 'query'>;

/** The head is the last row: a head row of its own would have to be updated by every batch, and collapses under a long reader. */
export const HEAD_QUERY = `SELECT position, encode(hash, 'hex') AS hash, at FROM log.events ORDER BY position DESC LIMIT 1`;

/** The head of an empty log. */
export const EMPTY_HEAD: LogHead = { position: 0, hash: GENESIS_HASH, at: 0 };

/** A row of the log as it is stored. */
export interface StoredRow {
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly at: number;
  readonly hash: string;
  readonly body: string;
}

const COLUMNS = `position, stream, revision, type, at, encode(hash, 'hex') AS hash, body`;

/** Where the log ends. */
export async function readHead(db: Queryable): Promise<LogHead> {
  const { rows } = await db.query<LogHead>({ name: 'log_head', text: HEAD_QUERY });
  return rows[0] ?? EMPTY_HEAD;
}

/** Raw rows after a position: for verification, which must not trust them. */
export async function readRows(db: Queryable, { after, limit }: PageRequest): Promise<StoredRow[]> {
  const text = `SELECT ${COLUMNS} FROM log.events WHERE position > $1 ORDER BY position LIMIT $2`;
  return (await db.query<StoredRow>({ name: 'log_rows', text, values: [after, limit] })).rows;
}

/** How many rows verification reads at once: an event has at most 256 KiB, so that even a page of the largest fits into memory. */
const PAGE = 1_000;

/** Raw rows after a position up to another, both the log's end and a gap included, page by page. */
export async function* rowPages(
  db: Queryable,
  after: number,
  upTo = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<readonly StoredRow[]> {
  for (let last = after; last < upTo; ) {
    const rows = (await readRows(db, { after: last, limit: PAGE })).filter(({ position }) => position <= upTo);
    const end = rows.at(-1);
    if (end === undefined) return;
    yield rows;
    if (rows.length < PAGE) return;
    last = end.position;
  }
}

/** Events after a position. */
export async function readEvents(db: Queryable, page: PageRequest): Promise<StoredEvent[]> {
  return (await readRows(db, page)).map(toStoredEvent);
}

/** Events after a position without what only verification looks at: for folds of a whole log. */
export async function readForFold(db: Queryable, { after, limit }: PageRequest): Promise<{ event: RecordedEvent }[]> {
  const { rows } = await db.query<[position: number, body: string]>({
    name: 'log_fold',
    text: 'SELECT position, body FROM log.events WHERE position > $1 ORDER BY position LIMIT $2',
    values: [after, limit],
    rowMode: 'array',
  });
  return rows.map(([position, body]) => ({ event: unseal(position, body) }));
}

/** Events of one stream after a revision. */
export async function readStreamEvents(db: Queryable, stream: string, page: PageRequest): Promise<StoredEvent[]> {
  const text = `SELECT ${COLUMNS} FROM log.events WHERE stream = $1 AND revision > $2 ORDER BY revision LIMIT $3`;
  const { rows } = await db.query<StoredRow>({ name: 'log_stream', text, values: [stream, page.after, page.limit] });
  return rows.map(toStoredEvent);
}

function toStoredEvent({ position, revision, hash, body }: StoredRow): StoredEvent {
  return { position, revision, hash, body, event: unseal(position, body) };
}
