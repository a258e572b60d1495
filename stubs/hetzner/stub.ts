import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { createApp, type RequestRecord } from './app.ts';
import { type BootCommand, BootedMachines, type BootHook } from './boot.ts';
import { FaultPlan, type FaultPlanInput } from './faults.ts';
import { FORGETFUL, loadState, StateFile, type StateStore } from './persistence.ts';
import { Project } from './project.ts';
import { DEFAULT_RATE_LIMIT, type RateLimit, RateLimiter } from './rate-limit.ts';
import { type CatalogueChanges, catalogueWith, OPERATOR_SSH_KEY } from './seeds.ts';
import { sshFingerprint } from './ssh-keys.ts';
import type { StubState } from './state.ts';

const LONGEST_TIMER_MS = 60_000;

/** How a stub behaves; every option has a default that is true to the API. */
export interface HetznerStubOptions {
  /** The only bearer token that is let in; left out: any that is not empty. */
  readonly token?: string;
  /** How long an action runs, in milliseconds (300). */
  readonly actionMs?: number;
  /** The clock of servers, actions and rate limit, in milliseconds since 1970. */
  readonly nowMs?: () => number;
  readonly rateLimit?: Partial<RateLimit>;
  /** Types that are sold out or deprecated somewhere. */
  readonly catalogue?: CatalogueChanges;
  readonly faults?: FaultPlanInput;
  /** Keeps the state in this file, so that a killed stub comes back with its servers. */
  readonly stateFile?: string;
  readonly onBoot?: BootHook;
  readonly bootCommand?: BootCommand;
  /** Told of every error that is the stub's own fault (console.error). */
  readonly logFault?: (error: unknown) => void;
}

/** A stub of the Hetzner Cloud API: a real server on a loopback socket. */
export interface HetznerStub {
  /** Binds to 127.0.0.1; port 0 takes a free one. `url` ends in /v1. Rejects when the port is in use. */
  listen(port?: number): Promise<{ readonly url: string; readonly port: number; readonly close: () => Promise<void> }>;
  /** Replaces the fault plan; its counters start at zero. Throws on a plan that is not valid. */
  setFaults(plan: FaultPlanInput): void;
  /** Every request to /v1 so far, oldest first. */
  requests(): readonly RequestRecord[];
  /** The state as it is at this moment of the clock. Live: not to be changed. */
  state(): StubState;
  /** Waits until the boots and ends of machines that are due have happened. */
  idle(): Promise<void>;
}

/**
 * Makes a stub of the Hetzner Cloud API: servers, actions, firewalls, server types, locations, images, SSH keys and
 * placement groups under /v1, and /_stub for tests. Throws on a state file or fault plan that is not valid.
 */
export function createHetznerStub(options: HetznerStubOptions = {}): HetznerStub {
  const nowMs = options.nowMs ?? Date.now;
  const { stateFile, logFault = (error: unknown) => console.error(error) } = options;
  const state = (stateFile === undefined ? undefined : loadState(stateFile)) ?? newState(nowMs());
  const store: StateStore = stateFile === undefined ? FORGETFUL : new StateFile(stateFile, state);
  const save = () => store.save();
  const machines = new BootedMachines({ ...pick(options), onChange: save, onFault: logFault });
  const { actionMs = 300 } = options;
  const project = new Project({ state, catalogue: catalogueWith(options.catalogue), machines, nowMs, actionMs });
  const faults = new FaultPlan();
  faults.replace(options.faults ?? []);
  const requests: RequestRecord[] = [];
  const clockwork = new Clockwork(project, () => void save().catch(logFault));
  const tick = () => clockwork.tick();
  const rateLimiter = new RateLimiter({ ...DEFAULT_RATE_LIMIT, ...options.rateLimit });
  const closing = new AbortController();
  const app = createApp({
    closing: closing.signal,
    project,
    faults,
    rateLimiter,
    requests,
    token: options.token,
    tick,
    save,
    logFault,
  });

  return {
    async listen(port = 0) {
      const server = createAdaptorServer({ fetch: app.fetch });
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject).listen(port, '127.0.0.1', resolve);
      });
      machines.resume(state.servers);
      tick();
      const { port: bound } = server.address() as AddressInfo;
      const close = async () => {
        closing.abort();
        clockwork.stop();
        const closed = new Promise<void>((resolve) => server.close(() => resolve()));
        if ('closeAllConnections' in server) server.closeAllConnections();
        await closed;
        for (const machine of state.servers) machines.powerOff(machine);
        await machines.idle();
        await save();
      };
      return { url: `http://127.0.0.1:${bound}/v1`, port: bound, close };
    },
    setFaults: (plan) => faults.replace(plan),
    requests: () => requests,
    state() {
      tick();
      return state;
    },
    async idle() {
      tick();
      await machines.idle();
    },
  };
}

const pick = ({ onBoot, bootCommand }: HetznerStubOptions) => ({
  ...(onBoot === undefined ? {} : { onBoot }),
  ...(bootCommand === undefined ? {} : { bootCommand }),
});

/** Ends actions when they are due, also when nobody asks: servers boot by themselves. */
class Clockwork {
  readonly #project: Project;
  readonly #save: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(project: Project, save: () => void) {
    this.#project = project;
    this.#save = save;
  }

  tick(): void {
    if (this.#project.settle()) this.#save();
    this.stop();
    const dueMs = this.#project.nextDueMs();
    if (dueMs === undefined) return;
    const waitMs = Math.min(Math.max(dueMs - this.#project.nowMs(), 1), LONGEST_TIMER_MS);
    this.#timer = setTimeout(() => this.tick(), waitMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

function newState(nowMs: number): StubState {
  const { name, publicKey } = OPERATOR_SSH_KEY;
  const key = { id: 1, name, publicKey, fingerprint: sshFingerprint(publicKey), labels: {}, createdMs: nowMs };
  return { nextId: 2, actions: [], servers: [], firewalls: [], sshKeys: [key], placementGroups: [] };
}
