import { backoffMs } from './backoff.ts';
import { GatewayClient } from './gateway-client.ts';
import type { Identity, IdentityStore } from './identity-store.ts';
import { describeError, type Log } from './log.ts';
import { type RenewOutcome, renew } from './renew.ts';
import type { Time } from './time.ts';

/** Attempts at a new client's first exchange: a lost packet must not cost the running jobs. */
const CHECK_ATTEMPTS = 3;

/** What a connection needs. */
export interface GatewayConnectionDependencies {
  readonly nodeId: string;
  readonly gatewayUrl: URL;
  readonly store: IdentityStore;
  readonly time: Time;
  readonly log: Log;
}

/** Whether another identity is in use now. `check_failed`: it is staged and the gateway does not take it; the agent is to start anew. */
export type SwapOutcome =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'swapped' }
  | { readonly kind: 'check_failed'; readonly reason: string };

/**
 * The client of now, which is exchanged in place when another identity is staged: by a renewal of its own or by a command beside it.
 * Whoever holds a client keeps it for what is under way; the former one is closed when that is answered.
 */
export class GatewayConnection {
  readonly #deps: GatewayConnectionDependencies;
  readonly #retiring = new Set<GatewayClient>();
  #client: GatewayClient;
  /** The generation in force on disk when it was last looked at; not the client's own when a refused one is staged. */
  #stagedGeneration: number;
  #acknowledgedGeneration: number | undefined;
  /** Why former generations could not be removed at the last attempt. */
  #discardProblem: string | undefined;
  /** Exchanges of the identity come one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(deps: GatewayConnectionDependencies, client: GatewayClient, stagedGeneration: number) {
    this.#deps = deps;
    this.#client = client;
    this.#stagedGeneration = stagedGeneration;
  }

  /** To be asked for at each request. */
  get client(): GatewayClient {
    return this.#client;
  }

  /**
   * Uses another staged identity without a check: for when the present one is of no use. Where the gateway has said that it does not take
   * the present one (`refused`) and nothing else was staged, every identity on disk is tried: the gateway's history may have been restored
   * to before a renewal, or to after it again. Keeps the present client when nothing is of use.
   */
  reload({ refused, signal }: { readonly refused: boolean; readonly signal: AbortSignal }): Promise<void> {
    return this.#inTurn(async () => {
      const staged = await this.#findOther();
      if (staged !== undefined) this.#exchange(this.#connect(staged), staged.generation);
      else if (refused) await this.#useAnyOnDisk(signal);
    });
  }

  /** Uses another staged identity once the gateway has taken it. */
  adoptStaged(signal: AbortSignal): Promise<SwapOutcome> {
    return this.#inTurn(() => this.#adopt(signal));
  }

  /** Renews the present certificate, and uses the new one once the gateway has taken it. */
  renew(signal: AbortSignal): Promise<Exclude<RenewOutcome, { kind: 'staged' }> | SwapOutcome> {
    const { nodeId, store } = this.#deps;
    return this.#inTurn(async () => {
      const outcome = await renew({ nodeId, store, client: this.#client, signal });
      return outcome.kind === 'staged' ? this.#adopt(signal) : outcome;
    });
  }

  /** The gateway has answered a lease of this client: what came before its identity is of no use any more and is removed, at the next lease where that fails. */
  async acknowledge({ identity: { generation } }: Pick<GatewayClient, 'identity'>): Promise<void> {
    if (generation === this.#acknowledgedGeneration) return;
    await this.#inTurn(async () => {
      try {
        if (generation === this.#stagedGeneration) await this.#deps.store.discardBefore(generation);
        this.#acknowledgedGeneration = generation;
        this.#discardProblem = undefined;
      } catch (error) {
        const reason = describeError(error);
        if (reason !== this.#discardProblem)
          this.#deps.log.error({ reason }, 'former generations not removed, trying again');
        this.#discardProblem = reason;
      }
    });
  }

  /** Ends every connection at once, those of former clients too. */
  async close(): Promise<void> {
    await Promise.all([...this.#retiring, this.#client].map((client) => client.close()));
  }

  async #adopt(signal: AbortSignal): Promise<SwapOutcome> {
    const staged = await this.#findOther();
    if (staged === undefined) return { kind: 'unchanged' };
    const client = this.#connect(staged);
    const reason = await this.#tryOut(client, signal);
    if (reason === undefined) {
      this.#exchange(client, staged.generation);
      return { kind: 'swapped' };
    }
    await client.close();
    return signal.aborted ? { kind: 'unchanged' } : { kind: 'check_failed', reason };
  }

  /** Uses the identity in force or the one before it, whichever is not the present one and is taken by the gateway. */
  async #useAnyOnDisk(signal: AbortSignal): Promise<void> {
    const { store, log } = this.#deps;
    const refused_generation = this.#client.identity.generation;
    for (const read of [() => store.current(), () => store.former()]) {
      const identity = await read().catch(() => undefined);
      if (identity === undefined || identity.generation === refused_generation) continue;
      const client = this.#connect(identity);
      if ((await client.askIdentity(signal)).kind === 'known') {
        const { generation } = identity;
        log.error({ generation, refused_generation }, 'the gateway does not take this identity; going on with another');
        this.#exchange(client, this.#stagedGeneration);
        return;
      }
      await client.close();
    }
  }

  /** Why the gateway does not take a client; undefined when it does. */
  async #tryOut(client: GatewayClient, signal: AbortSignal): Promise<string | undefined> {
    const { time } = this.#deps;
    for (let failures = 1; ; failures++) {
      const answer = await client.healthz(signal);
      if (answer.kind === 'ok') return undefined;
      if (answer.kind === 'aborted') return 'stopped before the gateway answered';
      const reason = answer.kind === 'refused' ? `HTTP ${answer.refusal.status} ${answer.refusal.code}` : answer.reason;
      const isFinal = answer.kind === 'refused' && answer.refusal.status < 500;
      if (isFinal || failures === CHECK_ATTEMPTS) return reason;
      await time.pause(backoffMs(failures, time), signal);
    }
  }

  /** The identity in force on disk when it is another one than at the last look; one that cannot be read counts as none. */
  async #findOther(): Promise<Identity | undefined> {
    const staged = await this.#deps.store.current().catch((error: unknown) => {
      this.#deps.log.error({ reason: describeError(error) }, 'identity not readable');
    });
    if (staged === undefined || staged.generation === this.#stagedGeneration) return undefined;
    return staged;
  }

  #connect(identity: Identity): GatewayClient {
    return new GatewayClient(this.#deps.gatewayUrl, identity, this.#deps.time);
  }

  #exchange(client: GatewayClient, stagedGeneration: number): void {
    const former = this.#client;
    this.#client = client;
    this.#stagedGeneration = stagedGeneration;
    const { generation, certificate } = client.identity;
    const notAfter = certificate.validToDate.toISOString();
    this.#deps.log.info({ generation, not_after: notAfter }, 'another identity is staged, using it');
    this.#retiring.add(former);
    void former.retire().finally(() => this.#retiring.delete(former));
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(act);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }
}
