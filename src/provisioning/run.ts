import type { Reply } from '../domain/decision.ts';
import type { NodeState } from '../domain/node/state.ts';
import type { HetznerApi } from '../hetzner/api.ts';
import { HetznerError } from '../hetzner/errors.ts';
import type { Waiting } from '../hetzner/waiting.ts';
import type { AppendedEvent, CommandDefinition } from '../transactor/command.ts';
import type { NodeLock } from './node-lock.ts';
import { LockLostError } from './node-lock.ts';
import { done, type ProvisionOutcome, type ProvisionRefusal, type StepResult, stop, stopForRule } from './outcome.ts';
import type { ProvisioningPorts, ProvisionOptions, ProvisionProgress } from './ports.ts';

type Step = ProvisionProgress['step'];

/** One operator's work on one node: the ports under one signal, and what was appended so far. */
export class Run {
  readonly nodeId: string;
  readonly ports: ProvisioningPorts;
  readonly api: HetznerApi;
  readonly waiting: Waiting;
  /** Aborts when the operator stops the run or the node's lock is lost. */
  readonly signal: AbortSignal;
  readonly events: AppendedEvent[] = [];
  readonly #onProgress: NonNullable<ProvisionOptions['onProgress']>;

  constructor(nodeId: string, ports: ProvisioningPorts, options: ProvisionOptions, lock?: NodeLock) {
    this.nodeId = nodeId;
    this.ports = ports;
    this.#onProgress = options.onProgress ?? (() => undefined);
    this.signal = AbortSignal.any([options.signal, lock?.lost].filter((signal) => signal !== undefined));
    const log = { warn: (fields: object, message: string) => this.say('provider', describeWait(fields, message)) };
    this.api = ports.hetzner({ signal: this.signal, log });
    const { providerPollMs: pollMs, providerTimeoutMs: timeoutMs } = ports.waits;
    this.waiting = { clock: ports.clock, pollMs, timeoutMs, signal: this.signal };
  }

  /** Tells what is about to be done. */
  say(step: Step, message: string, events: readonly AppendedEvent[] = []): void {
    this.#onProgress({ step, nodeId: this.nodeId, message, events });
  }

  /** Gives a command, unless the run has been stopped; tells what it appended. */
  async append<C, S>(
    step: Step,
    definition: CommandDefinition<C, S>,
    command: C,
    message: string,
  ): Promise<StepResult<Reply>> {
    this.signal.throwIfAborted();
    const outcome = await this.ports.execute(definition, command);
    if (!outcome.ok) return stopForRule(outcome.refusal);
    this.events.push(...outcome.events);
    if (outcome.events.length > 0) this.say(step, message, outcome.events);
    return done(outcome.reply);
  }

  /** The node's row; throws when it is not there, which only a rebuilt database of another fleet explains. */
  async node(): Promise<NodeState> {
    this.signal.throwIfAborted();
    const node = await this.ports.readNode(this.nodeId);
    if (node === undefined) throw new Error(`node ${this.nodeId} has no row although it was requested`);
    return node;
  }

  refused(refusals: readonly ProvisionRefusal[], known = true): ProvisionOutcome {
    return { ok: false, nodeId: known ? this.nodeId : null, refusals, events: this.events };
  }
}

/** Takes the node's lock, works, and gives it back. Whoever holds it meanwhile is named in the refusal `node_locked`. */
export async function underLock(
  nodeId: string,
  ports: ProvisioningPorts,
  options: ProvisionOptions,
  work: (run: Run, lock: NodeLock) => Promise<ProvisionOutcome>,
  resume?: string,
): Promise<ProvisionOutcome> {
  const attempt = await ports.lockNode(nodeId);
  if (!attempt.ok) {
    const refusal = stop(
      'node_locked',
      `node ${nodeId} is being provisioned by ${attempt.holder}`,
      'wait until it is done',
    );
    return { ok: false, nodeId, refusals: refusal.refusals, events: [] };
  }
  const { lock } = attempt;
  const run = new Run(nodeId, ports, options, lock);
  try {
    return await expectingTrouble(run, lock, () => work(run, lock), resume);
  } finally {
    await lock.release();
  }
}

/** Runs work and turns what may happen to it from outside (Ctrl-C, lost lock, provider down) into refusals. Faults are thrown on. */
export async function expectingTrouble(
  run: Run,
  lock: NodeLock | undefined,
  work: () => Promise<ProvisionOutcome>,
  resume = `go on with \`pushleft-controller fleet provision --resume ${run.nodeId}\``,
): Promise<ProvisionOutcome> {
  try {
    return await work();
  } catch (error) {
    if (lock?.lost.aborted === true || error instanceof LockLostError) {
      return run.refused(stop('lock_lost', 'the database session that held the node lock is lost', resume).refusals);
    }
    if (run.signal.aborted) return run.refused(stop('interrupted', 'the work was stopped', resume).refusals);
    if (error instanceof HetznerError) {
      return run.refused(stop('provider_failed', `the Hetzner API failed: ${error.message}`, resume).refusals);
    }
    throw error;
  }
}

function describeWait(fields: object, message: string): string {
  const told = Object.entries(fields).map(([name, value]) => `${name} ${value}`);
  return `${message} (${told.join(', ')})`;
}
