import type { Decision, DecisionTime, Reply } from '../domain/decision.ts';
import type { EventType } from '../domain/event/catalogue.ts';
import type { Actor } from '../domain/event/recorded.ts';
import type { Refusal } from '../domain/result.ts';
import type { Rows } from './row-view.ts';

/**
 * A kind of command: which rows it reads, and the pure decision on them. `load` may only read, and may run twice or more for one
 * command: ahead, for all commands of a batch at once, and again when a command of the batch before it has changed something, or when
 * the batch is tried again; only what it returned last counts. `decide` may not do even that. Reads that `load` starts together go out
 * together.
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

/** What became of a command. `events` is empty when what was asked for was so already; those of a refusal say that it was attempted. */
export type CommandOutcome =
  | { readonly ok: true; readonly events: readonly AppendedEvent[]; readonly reply: Reply }
  | { readonly ok: false; readonly refusal: Refusal; readonly events?: readonly AppendedEvent[] };

/**
 * Why a command was not decided: too many wait; the transactor is closed; the database does not answer; somebody holds the decision
 * lock; this program is older than its tables; its caller went away. Only `outcome_unknown` is another thing: the connection was lost
 * at the commit, and whether the command took effect could not be asked any more.
 */
type UnavailableReason =
  | 'queue_full'
  | 'closed'
  | 'database'
  | 'lock_busy'
  | 'definition_mismatch'
  | 'caller_gone'
  | 'outcome_unknown';

/** The control plane cannot take commands, or cannot say what became of one. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
  readonly reason: UnavailableReason;
  constructor(reason: UnavailableReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** What was loaded for a command, waiting to be decided on. */
export type Decide = (time: DecisionTime) => Decision;

/** A command given to the transactor, waiting for its turn. `load` reads what it needs and answers with its decision on that. */
export interface PendingCommand {
  readonly load: (rows: Rows) => Promise<Decide>;
  readonly commandId: string;
  readonly correlationId: string;
  readonly actor: CommandActor;
  readonly signal: AbortSignal | undefined;
  /** Until when it is tried again (ms of `performance.now()`). */
  readonly deadline: number;
  readonly resolve: (outcome: CommandOutcome) => void;
  readonly reject: (error: unknown) => void;
}
