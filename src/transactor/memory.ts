import type { Body } from '../domain/decision.ts';
import type { Queryable } from '../log/postgres/reader.ts';
import type { CommandOutcome } from './command.ts';
import { all } from './engine.ts';

/** Outcomes of commands that were decided before, by command id. */
export async function recallOutcomes(db: Queryable, ids: readonly string[]): Promise<Map<string, CommandOutcome>> {
  const { rows } = await db.query<{ command_id: string; outcome: string }>({
    name: 'recall_commands',
    text: 'SELECT command_id, outcome FROM telemetry.commands WHERE command_id = ANY($1::text[])',
    values: [ids],
  });
  return new Map(rows.map((row) => [row.command_id, JSON.parse(row.outcome) as CommandOutcome]));
}

/** Remembers outcomes, in the transaction that made them true. */
export async function rememberOutcomes(db: Queryable, outcomes: ReadonlyMap<string, CommandOutcome>): Promise<void> {
  if (outcomes.size === 0) return;
  await db.query({
    name: 'remember_commands',
    text: 'INSERT INTO telemetry.commands (command_id, outcome) SELECT * FROM unnest($1::text[], $2::text[])',
    values: [[...outcomes.keys()], [...outcomes.values()].map((outcome) => JSON.stringify(outcome))],
  });
}

/** Forgets what is older than `maxAgeMs`: the memory is for retries, the log remembers what happened. */
export async function forgetOutcomes(db: Queryable, maxAgeMs: number): Promise<void> {
  await db.query(`DELETE FROM telemetry.commands WHERE at < now() - $1 * interval '1 millisecond'`, [maxAgeMs]);
}

/** Stores the bodies whose digests are in this batch's events. */
export async function storeBodies(db: Queryable, bodies: readonly Body[]): Promise<void> {
  if (bodies.length === 0) return;
  await all([
    db.query({
      name: 'store_bodies',
      text: `
        INSERT INTO telemetry.bodies (job_id, role, sha256, body)
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
        ON CONFLICT (job_id, role) DO UPDATE SET sha256 = excluded.sha256, body = excluded.body`,
      values: [
        bodies.map((b) => b.jobId),
        bodies.map((b) => b.role),
        bodies.map((b) => b.sha256),
        bodies.map((b) => b.text),
      ],
    }),
  ]);
}
