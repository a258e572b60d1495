import { createHash } from 'node:crypto';
import type pg from 'pg';
import { createClient, READER_LIMITS } from '../database/connect.ts';

/** A node's lock, held by a database session of its own: it ends with the process, however that ends. */
export interface NodeLock {
  /** Aborts when the session is lost, and with it the lock. */
  readonly lost: AbortSignal;
  /** Asks the session whether it lives. Throws {@link LockLostError} when it does not. */
  check(): Promise<void>;
  release(): Promise<void>;
}

/** Tries to take a node's lock; when somebody has it already, says who. Never waits. */
export type NodeLocker = (
  nodeId: string,
) => Promise<{ readonly ok: true; readonly lock: NodeLock } | { readonly ok: false; readonly holder: string }>;

/** The lock's session ended under a run: another operator may be at work on the node. */
export class LockLostError extends Error {
  override readonly name = 'LockLostError';
}

/**
 * Locks nodes by session advisory locks, so that two operators who resume the same node make one server. `program` shows in
 * pg_stat_activity and so to whoever finds the node locked. A machine that vanished loses its lock within half a minute.
 */
export function nodeLocker({ url, program }: { url: string; program: string }): NodeLocker {
  return async (nodeId) => {
    const client = createClient({ url, program, limits: READER_LIMITS });
    const lost = new AbortController();
    const lose = (cause?: unknown) =>
      lost.abort(new LockLostError('the database session that held the node lock is lost', { cause }));
    client.on('error', lose);
    client.on('end', () => lose());
    await client.connect();
    try {
      // Where the peer is gone without a word, TCP notices after 10 + 3 * 5 s.
      await client.query('SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3');
      if (await tryLock(client, nodeId)) return { ok: true, lock: heldBy(client, lost.signal) };
      const holder = await findHolder(client, nodeId);
      await client.end();
      return { ok: false, holder };
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
  };
}

function heldBy(client: pg.Client, lost: AbortSignal): NodeLock {
  return {
    lost,
    async check() {
      lost.throwIfAborted();
      try {
        await client.query('SELECT');
      } catch (cause) {
        throw new LockLostError('the database session that held the node lock is lost', { cause });
      }
    },
    // Ending the session gives the lock back.
    release: () => client.end().catch(() => undefined),
  };
}

async function tryLock(client: pg.Client, nodeId: string): Promise<boolean> {
  const { rows } = await client.query<{ won: boolean }>('SELECT pg_try_advisory_lock($1) AS won', [
    lockKey(nodeId).toString(),
  ]);
  return rows[0]?.won === true;
}

async function findHolder(client: pg.Client, nodeId: string): Promise<string> {
  const key = BigInt.asUintN(64, lockKey(nodeId));
  // A bigint key shows in pg_locks as two halves; objsubid 1 says that it was one key.
  const { rows } = await client.query<{ program: string; db_user: string | null; pid: number }>(
    `SELECT a.application_name AS program, a.usename AS db_user, a.pid
       FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
        AND l.classid = $1::oid AND l.objid = $2::oid
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    [(key >> 32n).toString(), (key & 0xffff_ffffn).toString()],
  );
  const [holder] = rows;
  if (holder === undefined) return 'a session that has just ended';
  return `${holder.program} (database user ${holder.db_user ?? 'unknown'}, session ${holder.pid})`;
}

function lockKey(nodeId: string): bigint {
  return createHash('sha256').update(`pushleft provision ${nodeId}`).digest().readBigInt64BE();
}
