import { hostname } from 'node:os';
import pg from 'pg';
import { BoundedClient, type BoundedClientConfig } from './bounded-client.ts';
import { typeParsers } from './types.ts';

/**
 * Limits that keep a stopped or stalled program from holding the fleet up, in ms. `statementMs` binds the client too: it waits a little
 * longer for the answer than the server may take, and then takes the connection for lost. 0: no limit on either side.
 */
export interface SessionLimits {
  readonly idleInTransactionMs: number;
  readonly statementMs: number;
  readonly lockMs: number;
  /** Every statement is planned once for whatever values: for sessions whose statements are all named and read by key. */
  readonly plansOnce?: true;
}

/**
 * For sessions that may hold the log's lock: a SIGSTOPped program loses it within 3 s. Waiting for the lock may take longer than that,
 * so that whoever waits outlives whoever is stopped, and less than a transactor's patience, so that it asks twice.
 */
export const WRITER_LIMITS: SessionLimits = {
  idleInTransactionMs: 3_000,
  statementMs: 8_000,
  lockMs: 4_000,
  plansOnce: true,
};

/** For sessions that only read. */
export const READER_LIMITS: SessionLimits = { idleInTransactionMs: 60_000, statementMs: 30_000, lockMs: 10_000 };

/** How much longer than the server's own limit a client waits for an answer: for the way, and for a server that is slow to give up. */
const ANSWER_GRACE_MS = 1_000;

/** How a program connects: the URL, the name it shows in `pg_stat_activity`, its limits. */
export interface ConnectionOptions {
  readonly url: string;
  readonly program: string;
  readonly limits: SessionLimits;
}

/** The client configuration shared by pools and single connections. */
export function clientConfig({ url, program, limits }: ConnectionOptions): BoundedClientConfig {
  const settings = [
    `-c TimeZone=UTC`,
    `-c DateStyle=ISO`,
    `-c idle_in_transaction_session_timeout=${limits.idleInTransactionMs}`,
    `-c statement_timeout=${limits.statementMs}`,
    `-c lock_timeout=${limits.lockMs}`,
    `-c tcp_user_timeout=${limits.idleInTransactionMs}`,
    `-c client_connection_check_interval=1000`,
    // Statements are prepared once, perhaps when a table was empty, and a plan that reads a small table from end to end would be kept
    // while it grows: 95 ms instead of 2 for an append of 256 at 6,000 events (measured). All our reads have an index.
    `-c enable_seqscan=off`,
    ...(limits.plansOnce === true ? ['-c plan_cache_mode=force_generic_plan'] : []),
  ];
  return {
    connectionString: url,
    application_name: `pushleft ${program} ${hostname()}:${process.pid}`,
    options: settings.join(' '),
    types: typeParsers,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    answerMs: limits.statementMs === 0 ? 0 : limits.statementMs + ANSWER_GRACE_MS,
  };
}

/** What a single connection may have besides: statements sent without waiting for answers; an end when it asks nothing for a while. */
interface ClientExtras {
  readonly pipeline?: true;
  readonly idleSessionMs?: number;
}

/** A single connection, not connected yet. It may be lost at any time: what is asked on it fails then, and nothing else happens. */
export function createClient(options: ConnectionOptions, { pipeline, idleSessionMs }: ClientExtras = {}): pg.Client {
  const config = clientConfig(options);
  return new BoundedClient({
    ...config,
    options:
      idleSessionMs === undefined ? config.options : `${config.options} -c idle_session_timeout=${idleSessionMs}`,
    pipeline,
  });
}

/** A pool for readers and short statements. Lost idle connections are replaced silently; a query on a lost one throws. */
export function createPool(options: ConnectionOptions & { readonly max: number }): pg.Pool {
  // The pool hands its own configuration on to each client, `answerMs` with it.
  const config = { ...clientConfig(options), Client: BoundedClient, max: options.max, idleTimeoutMillis: 30_000 };
  const pool = new pg.Pool(config);
  pool.on('error', () => undefined);
  return pool;
}

/** SQLSTATE of a database error, if it is one. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** What node and pg say of a connection that was lost or never came about; these errors have no SQLSTATE. */
const CONNECTION_TROUBLE =
  /^(?:Connection terminated|Client has encountered a connection error|Client was closed|timeout expired|Query read timeout|timeout exceeded when trying to connect|Connection ended)/;

/**
 * Whether an error says that the connection, not the statement, failed: then nothing is known about what was sent last.
 * Class 08 and 57P0x (shutdown, terminated, crash), 25P03 (idle in transaction) and 53300 come from the server.
 */
export function isConnectionError(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined) return /^(?:08|57P|25P0[34]|53300)/.test(state);
  if (!(error instanceof Error)) return false;
  const { code = '', syscall } = error as NodeJS.ErrnoException;
  // A Unix socket that is not there is a server that is not there; any other file that is missing is no trouble of a connection.
  if (code === 'ENOENT') return syscall === 'connect';
  return /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET)/.test(code) || CONNECTION_TROUBLE.test(error.message);
}

/** Whether an error passes by itself, the connection being well: lock not available, serialization failure, deadlock. */
export function isTransient(error: unknown): boolean {
  return /^(?:55P03|40001|40P01)$/.test(sqlState(error) ?? '');
}
