import pg from 'pg';
import { clientConfig, READER_LIMITS, sqlState } from '../../src/database/connect.ts';
import { tableLines } from '../output/table.ts';

/** What one statement answered. Values are PostgreSQL's own text, null for NULL. */
export interface Answer {
  readonly command: string;
  readonly rowCount: number | null;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | null)[])[];
}

/** One database session of the shell. */
export interface SqlSession {
  run(statement: string): Promise<Answer>;
  /** Cancels the statement that runs, if one does. */
  cancel(): Promise<void>;
  close(): Promise<void>;
}

/** Up to the first word: blanks, comments, parentheses. */
const LEADING = /^(?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/|\()+/;
/** What a session that only reads takes: statements that answer with rows and cannot end or change its transaction. */
const READING = /^(?:select|with|table|values|explain|show)\b/i;

/**
 * Opens a session that refuses to write unless `write` says otherwise: each statement alone (the extended protocol takes no two) in a
 * read-only transaction, and none that could end it. A guard against slips; what a login may do at all is said by its role.
 */
export async function openSqlSession(url: string, program: string, write: boolean): Promise<SqlSession> {
  const config: pg.ClientConfig = {
    ...clientConfig({ url, program, limits: { ...READER_LIMITS, statementMs: 0, idleInTransactionMs: 600_000 } }),
    types: { getTypeParser: () => (value: string) => value },
  };
  const client = new pg.Client(config);
  client.on('error', () => undefined);
  await client.connect();
  const { rows } = await client.query<{ pid: string }>('SELECT pg_backend_pid() AS pid');
  const pid = rows[0]?.pid;
  return {
    async run(statement) {
      const result = await (write ? ask(client, statement) : readOnly(client, statement));
      const { command, rowCount, fields } = result;
      return { command, rowCount, columns: fields.map(({ name }) => name), rows: result.rows };
    },
    async cancel() {
      const other = new pg.Client(config);
      await other.connect();
      try {
        await other.query('SELECT pg_cancel_backend($1)', [pid]);
      } finally {
        await other.end();
      }
    },
    close: () => client.end(),
  };
}

function ask(client: pg.Client, text: string): Promise<pg.QueryResult<(string | null)[]>> {
  return client.query<(string | null)[]>({ text, rowMode: 'array' });
}

async function readOnly(client: pg.Client, text: string): Promise<pg.QueryResult<(string | null)[]>> {
  if (!READING.test(text.replace(LEADING, '')))
    throw new ReadOnlyError('only statements that read are taken; see --write');
  await client.query('BEGIN READ ONLY');
  try {
    const alone: pg.QueryArrayConfig & { queryMode: 'extended' } = { text, rowMode: 'array', queryMode: 'extended' };
    return await client.query<(string | null)[]>(alone);
  } finally {
    await client.query('ROLLBACK');
  }
}

/** A statement that a session which only reads does not take. */
class ReadOnlyError extends Error {
  override readonly name = 'ReadOnlyError';
}

/** An answer for people: its rows as a table and how many there are, or what the command did. */
export function answerLines({ command, rowCount, columns, rows }: Answer): string[] {
  if (columns.length === 0) return [rowCount === null ? command : `${command} ${rowCount}`];
  const table = tableLines(
    rows,
    columns.map((heading, i) => ({ heading, value: (row) => printable(row[i] ?? null) })),
  );
  return [...table, `(${rows.length} row${rows.length === 1 ? '' : 's'})`];
}

/** One cell on one line of a terminal: control characters would move its cursor. */
function printable(value: string | null): string {
  return value === null ? '∅' : value.replaceAll(/\p{Cc}/gu, (c) => (c === '\n' ? '⏎' : '�'));
}

/** A database error as a shell shows it; `undefined` for an error that ends the session. */
export function sqlErrorLine(error: unknown): string | undefined {
  if (error instanceof ReadOnlyError) return `ERROR: ${error.message}`;
  const state = sqlState(error);
  if (state === undefined || /^(?:08|57P)/.test(state) || !(error instanceof Error)) return undefined;
  return `ERROR ${state}: ${error.message}`;
}
