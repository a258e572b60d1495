import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { projectionOf, TABLE_NAMES } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import { DECISION_LOCK } from '../../src/database/locks.ts';
import { requestNode } from '../../src/domain/node/provision.ts';
import type { NodeState } from '../../src/domain/node/state.ts';
import { seal } from '../../src/log/codec.ts';
import { appendEvents } from '../../src/log/postgres/append.ts';
import { readHead } from '../../src/log/postgres/reader.ts';
import { selectByKeys, upsertRows } from '../../src/tables/statements.ts';
import { findStatement } from '../../src/transactor/find.ts';
import { nodeByName } from '../../src/transactor/finders.ts';
import { nodeRequest, OPERATOR } from '../support/fleet.ts';

/**
 * What the transactor is compared with: the same decision, event, chain and rows, each command in a transaction of its own on a pooled
 * connection, as one would write it first. It remembers no commands and wakes no followers.
 */
export async function requestNodeAlone(pool: pg.Pool): Promise<void> {
  const request = nodeRequest();
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query({ name: 'lock', text: `SELECT pg_advisory_xact_lock(${DECISION_LOCK})` });
    const head = await readHead(client);
    const found = await client.query<NodeState>(selectByKeys('fleet_nodes', [request.node_id]));
    const named = await client.query<NodeState>(
      findStatement(nodeByName, [{ args: { name: request.name }, limit: 1 }]),
    );
    const decision = requestNode(request, { node: found.rows[0], named: named.rows[0] });
    if ('refusal' in decision) throw new Error(decision.refusal.code);
    const commandId = randomUUID();
    const metadata = { command_id: commandId, correlation_id: commandId, program_version: '0.0.0-bench', epoch: 1 };
    const at = Math.max(Date.now(), head.at);
    const sealed = seal(
      head,
      decision.events,
      { ...metadata, actor: { ...OPERATOR, database_user: client.user ?? '', client_address: null } },
      at,
    );
    await appendEvents(client, head, sealed);
    for (const { event } of sealed) {
      for (const table of TABLE_NAMES) {
        const projection = projectionOf(table);
        const rows = projection
          .keys(event)
          .map((key): Row | null => projection.fold(undefined, event, key))
          .filter((row) => row !== null);
        if (rows.length > 0) await client.query(upsertRows(table, rows));
      }
    }
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
}
