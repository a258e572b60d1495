import type { Decision, DecisionTime, Reply } from '../domain/decision.ts';
import type { EventType } from '../domain/event/catalogue.ts';
import type { Actor } from '../domain/event/recorded.ts';
import type { Refusal } from '../domain/result.ts';
import type { Rows } from './row-view.ts';

/**
 * A kind of command: which rows it reads, and the pure decision on them. `load` may only read, and is called again when a command of
 * the same batch before it has changed something; `decide` may not do even that. Reads that `load` starts together go out together.
 */
export interface CommandDefinition<C, S> {
  readonly name: string;
  readonly load: (rows: Rows, command: C) => Promise<S>;
  readonly decide: (command: C, state: S, time: DecisionTime) => Decision;
}

/** Who gives a command. The database user and address are added by the transactor, from its own session. */
export type CommandActor = Pick<Actor, 'kind' | 'id'>;

/** How a command is given. The same `commandId` again is answered from memory, not repeated. */
export interface CommandOptions {
  readonly actor: CommandActor;
  readonly commandId?: string;
  readonly correlationId?: string;
  /** The command is dropped, undecided, when its caller has gone before its turn. */
  readonly signal?: AbortSignal;
}

/** An event as its command's caller is told of it. */
export interface AppendedEvent {
  readonly position: number;
  readonly type: EventType;
}

/** What became of a command. `events` is empty when what was asked for was so already. */
export type CommandOutcome =
  | { readonly ok: true; readonly events: readonly AppendedEvent[]; readonly reply: Reply }
  | { readonly ok: false; readonly refusal: Refusal };

/** The control plane cannot take commands now: full, stopped, the database away, or an older program than its tables. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
  readonly reason: 'queue_full' | 'closed' | 'database' | 'definition_mismatch' | 'caller_gone';
  constructor(reason: UnavailableError['reason'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** A command given to the transactor, waiting for its turn. */
export interface PendingCommand {
  readonly definition: CommandDefinition<unknown, unknown>;
  readonly command: unknown;
  readonly commandId: string;
  readonly correlationId: string;
  readonly actor: CommandActor;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (outcome: CommandOutcome) => void;
  readonly reject: (error: unknown) => void;
}
