import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { createHetznerClient } from '../hetzner/client.ts';
import { DEFAULT_WAITS } from '../hetzner/waiting.ts';
import { columns, readDatabase } from '../read/database.ts';
import type { CommandActor } from '../transactor/command.ts';
import type { Transactor } from '../transactor/transactor.ts';
import { caBundleReader } from './ca-bundle.ts';
import type { ProvisioningSettings } from './config.ts';
import { nodeLocker } from './node-lock.ts';
import type { ProvisioningPorts } from './ports.ts';

const ENROLLMENT_POLL_MS = 250;

/** What provisioning runs on outside of tests: the database, the provider's API, the clock. Nothing is opened before it is used. */
export function systemPorts({
  databaseUrl,
  pool,
  transactor,
  actor,
  settings,
}: {
  readonly databaseUrl: string;
  readonly pool: pg.Pool;
  readonly transactor: Pick<Transactor, 'execute'>;
  readonly actor: CommandActor;
  readonly settings: ProvisioningSettings;
}): ProvisioningPorts {
  const clock = {
    now: () => Date.now(),
    sleep: (ms: number, signal?: AbortSignal) => delay(ms, undefined, signal === undefined ? {} : { signal }),
  };
  const db = readDatabase(pool);
  return {
    settings,
    readCaBundle: caBundleReader(settings.caFile, () =>
      db.selectFrom('fleet.fleet_ca').select(columns('fleet_ca')).executeTakeFirst(),
    ),
    waits: {
      providerPollMs: DEFAULT_WAITS.pollMs,
      providerTimeoutMs: DEFAULT_WAITS.timeoutMs,
      enrollmentPollMs: ENROLLMENT_POLL_MS,
    },
    clock,
    randomBytes,
    hetzner: ({ signal, log }) =>
      createHetznerClient({
        baseUrl: settings.apiUrl,
        token: settings.apiToken,
        clock,
        random: Math.random,
        log,
        signal,
      }),
    execute: (definition, command) => transactor.execute(definition, command, { actor }),
    readNode: (nodeId) =>
      db
        .selectFrom('fleet.fleet_nodes')
        .select(columns('fleet_nodes'))
        .where('node_id', '=', nodeId)
        .executeTakeFirst(),
    lockNode: nodeLocker({ url: databaseUrl, program: `provision ${actor.id}` }),
  };
}
