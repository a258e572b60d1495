import type { Catalogue, ServerType } from './seeds.ts';
import type { Action, Command, Firewall, Server, StubState } from './state.ts';

/** How an action is going to end, when it does not simply succeed. */
export interface ActionFate {
  /** It stays `running` for ever. */
  readonly never?: boolean;
  /** It ends in `error` with this. */
  readonly error?: { readonly code: string; readonly message: string };
}

/** A request for an action: what it does to what, which action it waits for, and its fate. */
interface ActionRequest {
  readonly command: Command;
  readonly resources: Action['resources'];
  readonly fate: ActionFate;
  readonly after?: Action;
}

/** The machines behind the servers: told when one is switched on, off, or destroyed. */
export interface Machines {
  powerOn(server: Server): void;
  powerOff(server: Server): void;
  destroy(server: Server): void;
}

/** What a project is made of. `nowMs` is the only clock that servers and actions know. */
interface ProjectParts {
  readonly state: StubState;
  readonly catalogue: Catalogue;
  readonly machines: Machines;
  readonly nowMs: () => number;
  /** How long an action runs, in milliseconds. */
  readonly actionMs: number;
}

const PREDECESSOR_FAILED = { code: 'action_failed', message: 'Action failed' };

/** One Hetzner project: its resources, and the actions that change them as time goes by. */
export class Project {
  readonly state: StubState;
  readonly catalogue: Catalogue;
  readonly machines: Machines;
  readonly nowMs: () => number;
  readonly #actionMs: number;

  constructor(parts: ProjectParts) {
    this.state = parts.state;
    this.catalogue = parts.catalogue;
    this.machines = parts.machines;
    this.nowMs = parts.nowMs;
    this.#actionMs = parts.actionMs;
  }

  /** The next id; one growing sequence for all resources. */
  takeId(): number {
    const id = this.state.nextId;
    this.state.nextId += 1;
    return id;
  }

  /** Starts an action that runs for `actionMs`, counted from the end of the action it waits for. */
  startAction({ command, resources, fate, after }: ActionRequest): Action {
    const startedMs = this.nowMs();
    const action: Action = {
      id: this.takeId(),
      command,
      resources,
      status: 'running',
      startedMs,
      dueMs: fate.never === true ? null : (after?.dueMs ?? startedMs) + this.#actionMs,
      finishedMs: null,
      after: after?.id ?? null,
      error: fate.error ?? null,
    };
    this.state.actions.push(action);
    return action;
  }

  /** True while an action is running on the resource: the API calls it locked. */
  isLocked(type: 'server' | 'firewall', id: number): boolean {
    return this.state.actions.some((action) => action.status === 'running' && concerns(action, type, id));
  }

  /** Ends every action that is due, oldest first, with its effect. True when there was one. */
  settle(): boolean {
    let settled = false;
    for (let action = this.#nextDue(); action !== undefined; action = this.#nextDue()) {
      this.#finish(action);
      settled = true;
    }
    return settled;
  }

  /** When the next action is due, in milliseconds; undefined when none will ever be. */
  nextDueMs(): number | undefined {
    const dues = this.state.actions.flatMap((action) => (this.#canFinish(action) ? [action.dueMs ?? Infinity] : []));
    return dues.length === 0 ? undefined : Math.min(...dues);
  }

  /** The type's offers that are still on sale; a type without any is not listed. */
  offersOf(type: ServerType): ServerType['offers'] {
    const now = this.nowMs();
    return type.offers.filter(
      (offer) => offer.deprecation === null || Date.parse(offer.deprecation.unavailable_after) > now,
    );
  }

  /** The servers that a firewall is applied to directly, those being deleted included. */
  serversBehind(firewall: Firewall): Server[] {
    return this.state.servers.filter((server) => server.firewalls.some((applied) => applied.id === firewall.id));
  }

  #canFinish(action: Action): boolean {
    if (action.status !== 'running' || action.dueMs === null) return false;
    return this.#predecessor(action)?.status !== 'running';
  }

  #predecessor(action: Action): Action | undefined {
    return action.after === null ? undefined : this.state.actions.find((other) => other.id === action.after);
  }

  #nextDue(): Action | undefined {
    const now = this.nowMs();
    return this.state.actions
      .filter((action) => this.#canFinish(action) && (action.dueMs ?? Infinity) <= now)
      .toSorted((a, b) => (a.dueMs ?? 0) - (b.dueMs ?? 0) || a.id - b.id)[0];
  }

  #finish(action: Action): void {
    if (this.#predecessor(action)?.status === 'error') action.error ??= PREDECESSOR_FAILED;
    action.status = action.error === null ? 'success' : 'error';
    action.finishedMs = action.dueMs;
    const server = this.state.servers.find((candidate) => concerns(action, 'server', candidate.id));
    if (server !== undefined) this.#applyTo(server, action);
  }

  #applyTo(server: Server, action: Action): void {
    const succeeded = action.status === 'success';
    switch (action.command) {
      case 'create_server':
        server.status = succeeded && this.#isAwaited(action) ? 'starting' : 'off';
        if (succeeded) markApplied(server, () => true);
        return;
      case 'start_server':
        if (server.status === 'running') return;
        server.status = succeeded ? 'running' : 'off';
        if (succeeded) this.machines.powerOn(server);
        return;
      case 'stop_server':
      case 'shutdown_server':
        server.status = succeeded ? 'off' : 'running';
        if (succeeded) this.machines.powerOff(server);
        return;
      case 'reset_server':
      case 'reboot_server':
        if (succeeded && server.status === 'running') this.machines.powerOn(server);
        return;
      case 'delete_server':
        if (succeeded) this.#remove(server);
        else server.status = 'off';
        return;
      case 'apply_firewall':
        if (succeeded) markApplied(server, (id) => concerns(action, 'firewall', id));
        return;
      case 'remove_firewall':
        if (succeeded) server.firewalls = server.firewalls.filter(({ id }) => !concerns(action, 'firewall', id));
        return;
      case 'set_firewall_rules':
        return;
    }
  }

  #isAwaited(action: Action): boolean {
    return this.state.actions.some((other) => other.after === action.id);
  }

  #remove(server: Server): void {
    this.state.servers = this.state.servers.filter((other) => other.id !== server.id);
    this.machines.destroy(server);
  }
}

/** True when the action is about that resource. */
export const concerns = (action: Action, type: 'server' | 'firewall', id: number): boolean =>
  action.resources.some((resource) => resource.type === type && resource.id === id);

function markApplied(server: Server, which: (firewallId: number) => boolean): void {
  server.firewalls = server.firewalls.map((applied) =>
    which(applied.id) ? { id: applied.id, status: 'applied' } : applied,
  );
}
