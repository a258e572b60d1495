import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { FileStep } from '../pki/atomic-file.ts';
import type { PkiPaths } from '../pki/files.ts';
import { columns, readDatabase, readPrograms } from '../read/database.ts';
import { liveGatewayPkis } from '../read/gateway-pki.ts';
import type { CommandActor } from '../transactor/command.ts';
import type { Transactor } from '../transactor/transactor.ts';
import { HostFiles } from './host-files.ts';
import type { RotationPorts } from './ports.ts';

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
      const { rows, now } = await readPrograms(db);
      return liveGatewayPkis(rows, now);
    },
    say,
    uuid: randomUUID,
  };
}
