import { hostname } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { createPool, READER_LIMITS } from '../database/connect.ts';
import { ensureDevelopmentPki } from '../pki/development-ca.ts';
import { prepareDatabase } from './database.ts';
import { endOrphans } from './end-process.ts';
import { type EnvironmentInput, type Environments, newToken, surroundings, writeEnvironments } from './environments.ts';
import { endMachines, killMachines, stubPlaces } from './machines.ts';
import { choosePorts } from './ports.ts';
import { type PostgresServer, startPostgres } from './postgres/start-postgres.ts';
import { identifyProcess, signalProcess } from './process-identity.ts';
import { type ProgramStart, Supervisor } from './processes.ts';
import { gatewayProgram, hetznerStubProgram, schedulerProgram } from './programs.ts';
import { lockStateDirectory } from './state-lock.ts';
import { readUpRecord, type UpRecord, UpRecordFile } from './up-record.ts';
import { Watch, type WatchOptions } from './watch.ts';

/** Chosen where they are free, otherwise any that is. A state directory tries for those it had before. */
const PREFERRED_PORTS = { gateway: 8443, enroll: 8444, admin: 8445, hetzner: 8480 } as const;
type Ports = Record<keyof typeof PREFERRED_PORTS, number>;

/** Between the choice of a port and its use another program may take it. */
const PORT_ATTEMPTS = 3;

export interface FleetOptions extends WatchOptions {
  /** As prepareStateDirectory answers it. */
  readonly stateDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly programVersion: string;
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

/**
 * The control plane of a fleet on this machine: PostgreSQL, gateway, scheduler, and a stub of Hetzner's API whose machines are agents.
 * Everything listens at loopback only. Its state stays; a fleet that starts on it goes on where the one before ended, however that was.
 */
export class LocalFleet {
  readonly #options: FleetOptions;
  readonly #watch: Watch;
  readonly #supervisor: Supervisor;
  readonly #programs = new Map<string, ProgramStart>();
  readonly #opened = new AsyncDisposableStack();
  #record: UpRecordFile | undefined;
  #postgres: PostgresServer | undefined;

  constructor(options: FleetOptions) {
    const { stateDir, say } = options;
    this.#options = options;
    this.#watch = new Watch(options);
    this.#supervisor = new Supervisor({
      stateDir,
      record: async (running) => {
        const processes = running.map(({ name, process, logFile }) => ({ name, process, log_file: logFile }));
        await this.#record?.update({ processes });
      },
      onUnexpectedExit: ({ name, logFile }, exit) => {
        this.#watch.ended({ name, logFile, exit, restart: () => this.#restart(name) });
      },
      log: say,
    });
  }

  /** Aborts when a part died that nobody starts again. */
  get broken(): AbortSignal {
    return this.#watch.broken;
  }

  /** Answers when everything is ready. Throws one line that names the log to look at, or the signal's reason; all is stopped then. */
  async start(signal: AbortSignal): Promise<RunningFleet> {
    try {
      return await this.#start(AbortSignal.any([signal, this.broken]));
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** For the next reader of up.json: nodes are there, commands work. */
  async markReady(): Promise<void> {
    await this.#record?.update({ phase: 'ready' });
  }

  /** Stops the users of a thing before the thing; keeps the state. Repeating it does nothing. */
  async stop(): Promise<void> {
    await this.#record?.update({ phase: 'stopping' });
    await this.#opened.disposeAsync();
  }

  /** SIGKILL to everything at once; the next start clears up. */
  kill(): void {
    this.#supervisor.killAll();
    killMachines(this.#options.stateDir);
    if (this.#postgres !== undefined) signalProcess(this.#postgres.process, 'SIGQUIT');
  }

  async #start(signal: AbortSignal): Promise<RunningFleet> {
    const { stateDir, say } = this.#options;
    const earlier = await this.#takeOver();
    const database = await prepareDatabase(await this.#startPostgres());
    signal.throwIfAborted();
    const pool = createPool({ url: database.urls.operator, program: 'up', limits: READER_LIMITS, max: 6 });
    this.#opened.defer(() => pool.end());
    const pki = await ensureDevelopmentPki(join(stateDir, 'pki'), {
      dnsNames: ['localhost'],
      ipAddresses: ['127.0.0.1'],
      now: Date.now(),
    });
    this.#opened.defer(() => this.#supervisor.stopAll());
    const environments = await this.#startPrograms({ earlier, database, pki, pool, signal });
    this.#opened.defer(() => this.#watch.close());
    const { urls, paths } = this.#current;
    say('the control plane is ready');
    return { environments, pool, urls, paths };
  }

  get #current(): UpRecord {
    if (this.#record === undefined) throw new Error('the fleet has not been started');
    return this.#record.current;
  }

  /** Locks the state directory, ends what an earlier `up` left behind, begins a record of this one. Answers the earlier one's ports. */
  async #takeOver(): Promise<UpRecord['ports']> {
    const { stateDir, say } = this.#options;
    const lock = await lockStateDirectory(stateDir);
    if (!lock.ok) throw new Error(`a fleet runs in ${stateDir} already (process ${lock.holder.pid})`);
    this.#opened.defer(() => lock.release());
    const earlier = await readUpRecord(stateDir);
    await endOrphans(earlier?.processes ?? [], { log: say });
    await endMachines(stateDir, say);
    this.#record = new UpRecordFile(stateDir, {
      version: 1,
      phase: 'starting',
      started_at: Date.now(),
      up: identifyProcess(process.pid) ?? null,
      processes: [],
      ports: earlier?.ports ?? {},
      urls: {},
      paths: {
        logs: join(stateDir, 'logs'),
        environments: join(stateDir, 'env'),
        pki: join(stateDir, 'pki'),
        machines: stubPlaces(stateDir).machinesDir,
      },
    });
    await this.#record.update({});
    this.#opened.defer(async () => this.#record?.update({ phase: 'stopped', up: null, processes: [] }));
    return earlier?.ports ?? {};
  }

  async #startPostgres(): Promise<PostgresServer> {
    const { stateDir, say } = this.#options;
    say('starting PostgreSQL');
    const open = async () => {
      const server = await startPostgres({ stateDir, log: say });
      this.#postgres = server;
      void server.exited.then((exit) =>
        this.#watch.ended({ name: 'PostgreSQL', logFile: server.logFile, exit, restart: open }),
      );
      return server;
    };
    this.#opened.defer(async () => {
      await this.#watch.close();
      await this.#postgres?.stop();
    });
    return open();
  }

  /** Gateway, scheduler, stub, in this order; once more with other ports when somebody was faster. */
  async #startPrograms(
    input: Pick<EnvironmentInput, 'database' | 'pki'> & {
      earlier: UpRecord['ports'];
      pool: pg.Pool;
      signal: AbortSignal;
    },
  ): Promise<Environments> {
    const { stateDir, env, programVersion, say } = this.#options;
    const { earlier, database, pki, pool, signal } = input;
    const hetznerToken = newToken();
    for (let attempt = 1; ; attempt += 1) {
      const ports: Ports = await choosePorts({ ...PREFERRED_PORTS, ...pick(earlier) });
      const hetznerUrl = `http://127.0.0.1:${ports.hetzner}/v1`;
      const environments = await writeEnvironments({
        stateDir,
        env,
        database,
        pki,
        ports,
        hetznerUrl,
        hetznerToken,
        programVersion,
        restarted: 'gateway' in earlier,
      });
      await this.#record?.update({ ports, urls: urlsOf(ports) });
      try {
        say('starting gateway, scheduler and the stub of the Hetzner API');
        await this.#startAll(environments, ports, pool, signal);
        return environments;
      } catch (error) {
        const lost = error instanceof Error && /EADDRINUSE|is in use/.test(error.message);
        if (!lost || attempt === PORT_ATTEMPTS) throw error;
        say('another program took a port; trying others');
        await this.#supervisor.stopAll();
      }
    }
  }

  /** The stub comes last and so is stopped first: its agents hand back what they do to a gateway that listens. */
  async #startAll(environments: Environments, ports: Ports, pool: pg.Pool, signal: AbortSignal): Promise<void> {
    const { stateDir, env } = this.#options;
    const around = surroundings(stateDir, env);
    const gateway = gatewayProgram({ ...around, ...environments.gateway }, ports.admin);
    const scheduler = schedulerProgram({ ...around, ...environments.scheduler }, () => this.#hasSchedulerBeacon(pool));
    const stub = hetznerStubProgram({ ...around, ...environments['hetzner-stub'] }, stateDir, ports.hetzner);
    const started = await Promise.allSettled([this.#startProgram(gateway), this.#startProgram(scheduler)]);
    for (const { reason } of started.filter((outcome) => outcome.status === 'rejected')) throw reason;
    signal.throwIfAborted();
    await this.#startProgram(stub);
    signal.throwIfAborted();
  }

  async #startProgram(program: ProgramStart): Promise<void> {
    this.#programs.set(program.name, program);
    try {
      await this.#supervisor.start(program);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const log = join(this.#options.stateDir, 'logs', `${program.name}.log`);
      throw new Error(`${message}; its log is ${log}`, { cause: error });
    }
  }

  async #restart(name: string): Promise<void> {
    const program = this.#programs.get(name);
    if (program !== undefined) await this.#startProgram(program);
  }

  async #hasSchedulerBeacon(pool: pg.Pool): Promise<boolean> {
    const scheduler = this.#supervisor.running.find(({ name }) => name === 'scheduler');
    const id = `scheduler@${hostname()}:${scheduler?.process.pid ?? ''}`;
    const { rowCount } = await pool.query('SELECT FROM telemetry.programs WHERE program = $1', [id]);
    return rowCount === 1;
  }
}

function pick(earlier: UpRecord['ports']): Partial<Ports> {
  const names = Object.keys(PREFERRED_PORTS) as (keyof Ports)[];
  return Object.fromEntries(
    names.flatMap((name) => {
      const port = earlier[name];
      return port === undefined ? [] : [[name, port]];
    }),
  );
}

function urlsOf(ports: Ports): UpRecord['urls'] {
  return {
    gateway: `https://127.0.0.1:${ports.gateway}`,
    enroll: `https://127.0.0.1:${ports.enroll}`,
    admin: `http://127.0.0.1:${ports.admin}`,
    hetzner: `http://127.0.0.1:${ports.hetzner}/v1`,
  };
}
