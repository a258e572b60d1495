import type pg from 'pg';
import type { DecisionTime, Reply } from '../domain/decision.ts';
import type { EventType } from '../domain/event/catalogue.ts';
import type { Refusal } from '../domain/result.ts';
import { readHead } from '../log/postgres/reader.ts';
import { readSnapshot } from '../projector/generation.ts';
import type { CommandDefinition } from './command.ts';
import { requireDefinition } from './engine.ts';
import { RowView } from './row-view.ts';

/** What a command would do if it were given now. */
export type DryRun =
  | { readonly ok: true; readonly wouldAppend: readonly EventType[]; readonly reply: Reply }
  | { readonly ok: false; readonly refusal: Refusal };

/**
 * Decides a command on one snapshot of the current rows, without the lock and without appending. Between this and the real command
 * the fleet may move on, so it is a forecast.
 */
export function dryRun<C, S>(pool: pg.Pool, definition: CommandDefinition<C, S>, command: C): Promise<DryRun> {
  const forecast = async (client: pg.ClientBase): Promise<DryRun> => {
    const time = await readTime(client);
    const state = await definition.load(new RowView(client), command);
    const decision = definition.decide(command, state, time);
    if ('refusal' in decision) return { ok: false, refusal: decision.refusal };
    return { ok: true, wouldAppend: decision.events.map(({ event }) => event.type), reply: decision.reply };
  };
  // Not read-only: a guard row is read FOR UPDATE, exactly as the batch does.
  return readSnapshot(pool, forecast, 'READ WRITE');
}

async function readTime(client: pg.ClientBase): Promise<DecisionTime> {
  const head = await readHead(client);
  const { rows } = await client.query<{ now: number; digest: string | null }>(
    'SELECT clock_timestamp() AS now, (SELECT digest FROM fleet.definition) AS digest',
  );
  const [row] = rows;
  if (row === undefined) throw new Error('the database did not tell its clock');
  requireDefinition(row.digest);
  return { now: row.now, at: Math.max(row.now, head.at) };
}
