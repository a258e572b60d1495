import { hostname } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { type EnvironmentInput, type Environments, newToken, surroundings, writeEnvironments } from './environments.ts';
import { choosePorts } from './ports.ts';
import { type ProgramStart, Supervisor } from './processes.ts';
import { gatewayProgram, hetznerStubProgram, schedulerProgram } from './programs.ts';
import type { UpRecord, UpRecordFile } from './up-record.ts';
import type { Watch } from './watch.ts';

/** Chosen where they are free, otherwise any that is. A state directory tries for those it had before. */
const PREFERRED_PORTS = { gateway: 8443, enroll: 8444, admin: 8445, hetzner: 8480 } as const;
type Ports = Record<keyof typeof PREFERRED_PORTS, number>;
const NO_PREFERENCE: Ports = { gateway: 0, enroll: 0, admin: 0, hetzner: 0 };

/** Between the choice of a port and its use another program may take it. */
const PORT_ATTEMPTS = 3;

/** What the programs are started on. */
export interface ControlPlaneInput extends Pick<EnvironmentInput, 'database' | 'pki' | 'programVersion'> {
  /** Reads with the operators' login. */
  readonly pool: pg.Pool;
  /** Of the start before; empty on the first one. */
  readonly earlierPorts: UpRecord['ports'];
  readonly signal: AbortSignal;
}

interface ControlPlaneOptions extends Pick<EnvironmentInput, 'stateDir' | 'env'> {
  /** Whether a first start takes any free ports instead of the usual ones. */
  readonly anyPorts: boolean;
  readonly say: (line: string) => void;
  readonly record: UpRecordFile;
  readonly watch: Watch;
}

/** Gateway, scheduler and Hetzner stub: started together, recorded in up.json, told of and perhaps started again when one dies. */
export class ControlPlane {
  readonly #options: ControlPlaneOptions;
  readonly #supervisor: Supervisor;
  readonly #programs = new Map<string, ProgramStart>();

  constructor(options: ControlPlaneOptions) {
    const { stateDir, say, record, watch } = options;
    this.#options = options;
    this.#supervisor = new Supervisor({
      stateDir,
      log: say,
      record: (running) =>
        record.update({
          processes: running.map(({ name, process, logFile }) => ({ name, process, log_file: logFile })),
        }),
      onUnexpectedExit: ({ name, logFile }, exit) =>
        watch.ended({ name, logFile, exit, restart: () => this.#restart(name) }),
    });
  }

  /** Answers when all are ready; once more with other ports when somebody was faster. Throws one line that names the log to look at. */
  async start(input: ControlPlaneInput): Promise<Environments> {
    const { stateDir, env, anyPorts, record, say } = this.#options;
    const { earlierPorts } = input;
    const preferred = { ...(anyPorts ? NO_PREFERENCE : PREFERRED_PORTS), ...known(earlierPorts) };
    const hetznerToken = newToken();
    for (let attempt = 1; ; attempt += 1) {
      const ports: Ports = await choosePorts(preferred);
      const restarted = 'gateway' in earlierPorts;
      const urls = urlsOf(ports);
      const own = { stateDir, env, ports, hetznerUrl: urls.hetzner, hetznerToken, restarted };
      const environments = await writeEnvironments({ ...input, ...own });
      await record.update({ ports, urls });
      try {
        say('starting gateway, scheduler and the stub of the Hetzner API');
        await this.#startAll(environments, ports, input);
        return environments;
      } catch (error) {
        const portLost = error instanceof Error && /EADDRINUSE|is in use/.test(error.message);
        if (!portLost || attempt === PORT_ATTEMPTS) throw error;
        say('another program took a port; trying others');
        await this.stop();
      }
    }
  }

  /** The last started first. */
  stop(): Promise<void> {
    return this.#supervisor.stopAll();
  }

  kill(): void {
    this.#supervisor.killAll();
  }

  /** The stub comes last and so is stopped first: its agents hand back what they do to a gateway that listens. */
  async #startAll(environments: Environments, ports: Ports, { pool, signal }: ControlPlaneInput): Promise<void> {
    const { stateDir, env } = this.#options;
    const around = surroundings(stateDir, env);
    const gateway = gatewayProgram({ ...around, ...environments.gateway }, ports.admin);
    const scheduler = schedulerProgram({ ...around, ...environments.scheduler }, () => this.#hasSchedulerBeacon(pool));
    const stub = hetznerStubProgram({ ...around, ...environments['hetzner-stub'] }, stateDir, ports.hetzner);
    // Both are waited for: what is still starting when this throws could not be stopped.
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
    if (program !== undefined) await this.#supervisor.start(program);
  }

  async #hasSchedulerBeacon(pool: pg.Pool): Promise<boolean> {
    const scheduler = this.#supervisor.running.find(({ name }) => name === 'scheduler');
    const id = `scheduler@${hostname()}:${scheduler?.process.pid ?? ''}`;
    const { rowCount } = await pool.query('SELECT FROM telemetry.programs WHERE program = $1', [id]);
    return rowCount === 1;
  }
}

function known(earlier: UpRecord['ports']): Partial<Ports> {
  const names = Object.keys(PREFERRED_PORTS) as (keyof Ports)[];
  return Object.fromEntries(names.flatMap((name) => (earlier[name] === undefined ? [] : [[name, earlier[name]]])));
}

function urlsOf(ports: Ports): Record<keyof Ports, string> {
  return {
    gateway: `https://127.0.0.1:${ports.gateway}`,
    enroll: `https://127.0.0.1:${ports.enroll}`,
    admin: `http://127.0.0.1:${ports.admin}`,
    hetzner: `http://127.0.0.1:${ports.hetzner}/v1`,
  };
}
