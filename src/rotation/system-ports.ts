import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { GATEWAY_LIVE_MS } from '../domain/ca/state.ts';
import type { FileStep } from '../pki/atomic-file.ts';
import type { PkiPaths } from '../pki/files.ts';
import { columns, readDatabase } from '../read/database.ts';
import type { CommandActor } from '../transactor/command.ts';
import type { Transactor } from '../transactor/transactor.ts';
import { HostFiles } from './host-files.ts';
import type { RotationPorts } from './ports.ts';

const LIVE_GATEWAYS = `
  SELECT program, coalesce(details -> 'pki' -> 'trusted_ca_sha256s', '[]') AS trusted,
         details -> 'pki' -> 'serving' ->> 'issuer_ca_sha256' AS serving_issuer
  FROM telemetry.programs
  WHERE kind = 'gateway' AND beacon_at > clock_timestamp() - $1 * interval '1 millisecond' ORDER BY program`;

/** What a rotation runs on outside of tests: the files of this host, the database, the clock. */
export function systemPorts({
  paths,
  pool,
  transactor,
  actor,
  say,
  before,
}: {
  readonly paths: PkiPaths;
  readonly pool: pg.Pool;
  readonly transactor: Pick<Transactor, 'execute'>;
  readonly actor: CommandActor;
  readonly say: RotationPorts['say'];
  /** Told every step on the disk; throws where it must not be done any more. */
  readonly before: FileStep;
}): RotationPorts {
  const db = readDatabase(pool);
  return {
    files: new HostFiles(paths, before),
    nowMs: () => Date.now(),
    pause: (ms) => delay(ms),
    execute: (definition, command) => transactor.execute(definition, command, { actor }),
    readCa: () => db.selectFrom('fleet.fleet_ca').select(columns('fleet_ca')).executeTakeFirst(),
    lastRotation: () =>
      db
        .selectFrom('fleet.ca_rotations')
        .select(columns('ca_rotations'))
        .orderBy('begun_at', 'desc')
        .limit(1)
        .executeTakeFirst(),
    async liveGateways() {
      const { rows } = await pool.query<{ program: string; trusted: string[]; serving_issuer: string | null }>(
        LIVE_GATEWAYS,
        [GATEWAY_LIVE_MS],
      );
      return rows.map(({ program, trusted, serving_issuer }) => ({ program, trusted, servingIssuer: serving_issuer }));
    },
    say,
    uuid: randomUUID,
  };
}
