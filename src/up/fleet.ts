import { join } from 'node:path';
import type pg from 'pg';
import { createPool, READER_LIMITS } from '../database/connect.ts';
import { ensureDevelopmentPki } from '../pki/development-ca.ts';
import type { PkiPaths } from '../pki/files.ts';
import { initialize } from '../rotation/initialize.ts';
import { systemPorts } from '../rotation/system-ports.ts';
import { Transactor } from '../transactor/transactor.ts';
import { ControlPlane } from './control-plane.ts';
import { prepareDatabase } from './database.ts';
import { endOrphans } from './end-process.ts';
import type { Environments } from './environments.ts';
import { endMachines, killMachines, stubPlaces } from './machines.ts';
import { type PostgresServer, startPostgres } from './postgres/start-postgres.ts';
import { identifyProcess, signalProcess } from './process-identity.ts';
import { lockStateDirectory } from './state-lock.ts';
import { readUpRecord, type UpRecord, UpRecordFile } from './up-record.ts';
import { Watch, type WatchOptions } from './watch.ts';

export interface FleetOptions extends WatchOptions {
  /** As prepareStateDirectory answers it. */
  readonly stateDir: string;
  /** `up`'s own environment; see settings.ts for what of it is handed on. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly programVersion: string;
  /** Whether a first start takes any free ports instead of 8443, 8444, 8445 and 8480. */
  readonly anyPorts: boolean;
  /** Called with one line for each step. */
  readonly say: (line: string) => void;
}

/** What runs once a fleet has started. */
export interface RunningFleet {
  /** Secrets; see environments.ts. */
  readonly environments: Environments;
  /** Reads with the operators' login; ended by `stop`. */
  readonly pool: pg.Pool;
  readonly urls: UpRecord['urls'];
  readonly paths: UpRecord['paths'];
}

/** Another `up` works on the state directory. */
export class FleetRunsError extends Error {
  override readonly name = 'FleetRunsError';
}

/**
 * A fleet on this machine: PostgreSQL, gateway, scheduler, and a stub of Hetzner's API whose machines are agents. Everything listens at
 * loopback only. Its state stays; a fleet that starts on it goes on where the one before ended, however that was.
 */
export class LocalFleet {
  readonly #options: FleetOptions;
  readonly #watch: Watch;
  readonly #opened = new AsyncDisposableStack();
  #record: UpRecordFile | undefined;
  #controlPlane: ControlPlane | undefined;
  #postgres: PostgresServer | undefined;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#watch = new Watch(options);
  }

  /** Aborts when a part died that nobody starts again. */
  get broken(): AbortSignal {
    return this.#watch.broken;
  }

  /**
   * Answers when everything is ready. Throws FleetRunsError, the signal's reason, or one line that names the log to look at; all that
   * was started is stopped then.
   */
  async start(signal: AbortSignal): Promise<RunningFleet> {
    try {
      return await this.#start(AbortSignal.any([signal, this.broken]));
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Says in up.json that nodes are there and commands work. */
  async markReady(): Promise<void> {
    await this.#record?.update({ phase: 'ready' });
  }

  /** Stops the users of a thing before the thing; keeps the state. Repeating it does nothing. */
  async stop(): Promise<void> {
    if (this.#opened.disposed) return;
    // A state directory that was deleted meanwhile must not keep anything running.
    await this.#record?.update({ phase: 'stopping' }).catch(() => undefined);
    await this.#opened.disposeAsync();
  }

  /** Ends everything at once, without waiting; the next start clears up. */
  kill(): void {
    this.#controlPlane?.kill();
    killMachines(this.#options.stateDir);
    if (this.#postgres !== undefined) signalProcess(this.#postgres.process, 'SIGQUIT');
  }

  async #start(signal: AbortSignal): Promise<RunningFleet> {
    const { stateDir, env, programVersion, anyPorts, say } = this.#options;
    const { record, earlierPorts } = await this.#takeOver();
    const postgres = await this.#startPostgres();
    signal.throwIfAborted();
    const database = await prepareDatabase(postgres);
    const pool = createPool({ url: database.urls.operator, program: 'up', limits: READER_LIMITS, max: 6 });
    this.#opened.defer(() => pool.end());
    const names = { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] };
    const pki = await ensureDevelopmentPki(join(stateDir, 'pki'), { ...names, now: Date.now() });
    await recordCa(database.urls.operator, pool, pki, programVersion);
    const controlPlane = new ControlPlane({ stateDir, env, anyPorts, say, record, watch: this.#watch });
    this.#controlPlane = controlPlane;
    this.#opened.defer(() => controlPlane.stop());
    this.#opened.defer(() => this.#watch.close());
    const environments = await controlPlane.start({ database, pki, programVersion, pool, earlierPorts, signal });
    const { urls, paths } = record.current;
    return { environments, pool, urls, paths };
  }

  /** Locks the state directory, ends what an earlier `up` left behind, begins a record of this one. */
  async #takeOver(): Promise<{ record: UpRecordFile; earlierPorts: UpRecord['ports'] }> {
    const { stateDir, say } = this.#options;
    const lock = await lockStateDirectory(stateDir);
    if (!lock.ok) throw new FleetRunsError(`a fleet runs in ${stateDir} already (process ${lock.holder.pid})`);
    this.#opened.defer(() => lock.release());
    const earlier = await readUpRecord(stateDir);
    await endOrphans(earlier?.processes ?? [], { log: say });
    await endMachines(stateDir, say);
    const earlierPorts = earlier?.ports ?? {};
    const record = new UpRecordFile(stateDir, newRecord(stateDir, earlierPorts));
    await record.update({});
    this.#record = record;
    this.#opened.defer(() => record.update({ phase: 'stopped', up: null, processes: [] }));
    return { record, earlierPorts };
  }

  async #startPostgres(): Promise<PostgresServer> {
    const { stateDir, say } = this.#options;
    say('starting PostgreSQL');
    this.#opened.defer(async () => {
      await this.#watch.close();
      await this.#postgres?.stop();
    });
    return this.#openPostgres(stateDir, say);
  }

  async #openPostgres(stateDir: string, log: (line: string) => void): Promise<PostgresServer> {
    const server = await startPostgres({ stateDir, log });
    this.#postgres = server;
    const restart = () => this.#openPostgres(stateDir, log);
    const watched = async () =>
      this.#watch.ended({ name: 'PostgreSQL', logFile: server.logFile, exit: await server.exited, restart });
    void watched();
    return server;
  }
}

/** Makes the fleet's CA known to the log, once. */
async function recordCa(url: string, pool: pg.Pool, paths: PkiPaths, programVersion: string): Promise<void> {
  const transactor = new Transactor({ url, program: 'up', programVersion });
  const silent = () => undefined;
  const actor = { kind: 'operator', id: 'up' } as const;
  try {
    const ports = systemPorts({ paths, pool, transactor, actor, say: silent, before: silent });
    // A fleet that was stopped in a rotation may have another CA in its file than the one that is known: that is for `fleet ca` to finish.
    if ((await ports.readCa()) === undefined) await initialize(ports);
  } finally {
    await transactor.close();
  }
}

function newRecord(stateDir: string, ports: UpRecord['ports']): UpRecord {
  return {
    version: 1,
    phase: 'starting',
    started_at: Date.now(),
    up: identifyProcess(process.pid) ?? null,
    processes: [],
    ports,
    urls: {},
    paths: {
      logs: join(stateDir, 'logs'),
      environments: join(stateDir, 'env'),
      pki: join(stateDir, 'pki'),
      machines: stubPlaces(stateDir).machinesDir,
    },
  };
}
