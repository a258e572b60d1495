import { hostname } from 'node:os';
import type { Queryable } from '../log/postgres/reader.ts';

/** How a running program names itself, in beacons and as the actor of what it decides. */
export function programId(kind: string): string {
  return `${kind}@${hostname()}:${process.pid}`;
}

/** Writes a program's beacon: it is alive, and this is what it says of itself. `fleet doctor` reads them. */
export async function writeBeacon(
  db: Queryable,
  program: { id: string; kind: 'gateway' | 'scheduler'; details: object },
): Promise<void> {
  await db.query({
    name: 'write_beacon',
    text: `
      INSERT INTO telemetry.programs (program, kind, details, started_at, beacon_at)
      VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp())
      ON CONFLICT (program) DO UPDATE SET details = excluded.details, beacon_at = excluded.beacon_at`,
    values: [program.id, program.kind, JSON.stringify(program.details)],
  });
}

/** Removes a program's beacon when it ends in good order, and those of programs that have been gone for a day. */
export async function removeBeacon(db: Queryable, id: string): Promise<void> {
  await db.query(`DELETE FROM telemetry.programs WHERE program = $1 OR beacon_at < now() - interval '1 day'`, [id]);
}
