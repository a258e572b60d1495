import { randomUUID } from 'node:crypto';
import type { JobKind } from '../src/protocol/job-kinds/registry.ts';
import type { HostFacts } from '../src/protocol/lease.ts';
import { BACKOFF_MAX_MS, backoffMs } from './backoff.ts';
import type { Cleanup } from './cleanup.ts';
import type { Lease, LeaseAnswer } from './gateway-answers.ts';
import type { GatewayClient } from './gateway-client.ts';
import type { LeaseMemory } from './lease-memory.ts';
import { describeError, type Log } from './log.ts';
import type { Time } from './time.ts';
import { AGENT_VERSION } from './version.ts';

/** Shortest distance of two polls that found nothing, for a gateway that does not wait; and after a cleanup, which is told soon. */
const IDLE_PAUSE_MS = 2_000;

/** What the loop needs. */
export interface LeaseLoopDependencies {
  /** The client of now: it is replaced when another identity is staged. */
  readonly gateway: () => Pick<GatewayClient, 'lease' | 'identity'>;
  /** Looks for another identity on disk; called while the present one is refused, or not answered: an untrusted one hears nothing. */
  readonly reloadIdentity: (why: { readonly refused: boolean; readonly signal: AbortSignal }) => Promise<void>;
  /** Told of each client whose lease request the gateway has decided, which is when what came before it is over. */
  readonly acknowledge: (client: Pick<GatewayClient, 'identity'>) => Promise<void>;
  readonly facts: () => Promise<HostFacts>;
  readonly memory: LeaseMemory;
  readonly runJob: (lease: Lease) => Promise<void>;
  /** Looks after this host's services; never throws. */
  readonly tend: (signal: AbortSignal) => Promise<void>;
  /** Removes what was fenced away from this host while it was lost. */
  readonly cleanup: Pick<Cleanup, 'perform' | 'cleaned' | 'acknowledge'>;
  /** The kinds of job that this host does. */
  readonly kinds: readonly JobKind[];
  readonly time: Time;
  readonly log: Log;
  readonly waitSeconds: number;
  /** Tells the gateway two hosts with one identity apart; undefined where the host has none. */
  readonly bootId: string | undefined;
}

/**
 * Leases one job after the other until `stopping` is aborted. A request keeps its id until it was answered, so that a job
 * whose grant was lost on the way is granted again. Nothing that gateway or network do ends the loop.
 */
export async function runLeaseLoop(deps: LeaseLoopDependencies, stopping: AbortSignal): Promise<void> {
  const { gateway, memory, cleanup, time } = deps;
  const condition = reportChanges(deps.log);
  let requestId = (await persisted(memory.takeUnanswered(), deps.log)) ?? randomUUID();
  let failures = 0;
  while (!stopping.aborted) {
    const { cleaned } = cleanup;
    const request = {
      request_id: requestId,
      agent_version: AGENT_VERSION,
      capabilities: { kinds: [...deps.kinds], host: await deps.facts() },
      ...(memory.logHead === undefined ? {} : { log_head: memory.logHead }),
      ...(deps.bootId === undefined ? {} : { boot_id: deps.bootId }),
      ...(cleaned.length === 0 ? {} : { cleaned }),
      wait_seconds: deps.waitSeconds,
    };
    const askedAtMs = time.nowMs();
    const client = gateway();
    const answer = await client.lease(request, stopping);
    condition(answer);
    if (isDecided(answer)) {
      cleanup.acknowledge(cleaned);
      await deps.acknowledge(client);
    }
    // Not on a host whose services are to go.
    if (answer.kind !== 'node_lost' && answer.kind !== 'aborted') await deps.tend(stopping);
    failures = answer.kind === 'undecided' ? failures + 1 : 0;
    switch (answer.kind) {
      case 'job':
        await persisted(memory.keepLogHead(answer.logHead), deps.log);
        requestId = randomUUID();
        await deps.runJob(answer.lease);
        break;
      case 'idle':
        await persisted(memory.keepLogHead(answer.logHead), deps.log);
        requestId = randomUUID();
        await time.pause(idlePauseMs(time.nowMs() - askedAtMs, time), stopping);
        break;
      case 'node_lost':
        await cleanup.perform(answer.cleanup, stopping);
        await time.pause(cleanup.cleaned.length > 0 ? IDLE_PAUSE_MS : slowPauseMs(time), stopping);
        break;
      case 'not_active':
        await time.pause(slowPauseMs(time), stopping);
        break;
      case 'unauthenticated':
        await time.pause(slowPauseMs(time), stopping);
        await deps.reloadIdentity({ refused: true, signal: stopping });
        break;
      case 'undecided':
        await time.pause(Math.max(backoffMs(failures, time), answer.retryAfterMs ?? 0), stopping);
        await deps.reloadIdentity({ refused: false, signal: stopping });
        break;
      case 'aborted':
        await persisted(memory.keepUnanswered(requestId), deps.log);
        break;
    }
  }
}

/** Granted, empty or 403: the gateway has taken this certificate for the node's, and former ones are revoked. */
function isDecided({ kind }: LeaseAnswer): boolean {
  return kind === 'job' || kind === 'idle' || kind === 'not_active' || kind === 'node_lost';
}

/** A full disk must not keep a host from its work: what could not be remembered is logged and done without. */
async function persisted<T>(writing: Promise<T>, log: Log): Promise<T | undefined> {
  try {
    return await writing;
  } catch (error) {
    log.error({ reason: describeError(error) }, 'lease memory not written');
    return undefined;
  }
}

/** Jitter only, after a gateway that has waited; the rest of the distance after one that has not. */
function idlePauseMs(askedForMs: number, time: Time): number {
  return Math.max(0, IDLE_PAUSE_MS - askedForMs) + time.random() * 500;
}

/** Between half and all of the longest back-off: these conditions end by an operator's hand. */
function slowPauseMs(time: Time): number {
  return BACKOFF_MAX_MS * (0.5 + time.random() / 2);
}

/** Logs what the gateway makes of this node, once for each change. */
function reportChanges(log: Log): (answer: LeaseAnswer) => void {
  let last: string | undefined;
  return (answer) => {
    const report = describe(answer);
    if (report === undefined || report.key === last) return;
    const returned = report.level === 'info' && last === undefined;
    last = report.key;
    log[report.level](report.fields, returned ? 'leasing' : report.message);
  };
}

interface Report {
  /** What counts as the same condition. */
  readonly key: string;
  readonly level: 'info' | 'warn' | 'error';
  readonly fields: object;
  readonly message: string;
}

function describe(answer: LeaseAnswer): Report | undefined {
  switch (answer.kind) {
    case 'job':
    case 'idle':
      return { key: 'ok', level: 'info', fields: {}, message: 'leasing again' };
    case 'not_active':
      return {
        key: `not_active ${answer.status}`,
        level: 'warn',
        fields: { status: answer.status },
        message: 'the node is not active, no work for now',
      };
    case 'node_lost':
      return {
        key: 'node_lost',
        level: 'error',
        fields: { cleanup: answer.cleanup.length },
        message: 'the node was declared lost and gets no work any more',
      };
    case 'unauthenticated':
      return {
        key: `unauthenticated ${answer.code}`,
        level: 'error',
        fields: { code: answer.code },
        message: 'the gateway does not accept the certificate; waiting for another identity',
      };
    case 'undecided':
      return {
        key: `undecided ${answer.reason}`,
        level: 'warn',
        fields: { reason: answer.reason },
        message: 'lease not answered, trying again',
      };
    case 'aborted':
      return undefined;
  }
}
