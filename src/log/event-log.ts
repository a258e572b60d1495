import type { RecordedEvent } from '../domain/event/recorded.ts';

/** Where the log ends: the last position (0 when empty), its chain hash (hex) and its `at` (ms). */
export interface LogHead {
  readonly position: number;
  readonly hash: string;
  readonly at: number;
}

/** An event as it lies in the log: the exact bytes that are hashed, and the event read from them (upcast to today's version). */
export interface StoredEvent {
  readonly position: number;
  readonly revision: number;
  readonly hash: string;
  readonly body: string;
  readonly event: RecordedEvent;
}

/** An event ready to be appended: its bytes and the chain hash that they have at their place. */
export interface SealedEvent {
  readonly body: string;
  readonly hash: string;
  readonly event: RecordedEvent;
}

/** One page of a log that is read forward. */
export interface PageRequest {
  readonly after: number;
  readonly limit: number;
}

/**
 * The one totally ordered log of the fleet. Positions are gapless from 1, so whoever reads on from the last position that was seen
 * can never miss an event. Reading never blocks writers. Two engines implement it: PostgreSQL here, EventStoreDB later.
 */
export interface EventLog {
  head(): Promise<LogHead>;
  /** Events after a position, in order, at most `limit`. */
  read(page: PageRequest): Promise<readonly StoredEvent[]>;
  /** Events of one entity after a revision (revisions count from 1 in each stream). */
  readStream(stream: string, page: PageRequest): Promise<readonly StoredEvent[]>;
  /** Events after a position, for ever: first what is there, then what comes. Ends when `signal` aborts. */
  follow(from: { after: number; signal: AbortSignal }): AsyncIterable<readonly StoredEvent[]>;
}

/**
 * The writing half of an engine, for one writer and its session. The writer keeps others out meanwhile (the decision lock); the log
 * checks all the same.
 */
export interface LogWriter {
  /** Where the log ends now: read afresh each time, once the lock is held. */
  head(): Promise<LogHead>;
  /**
   * Appends sealed events behind `head`, all or none, and wakes followers. They are in the log when the session commits, and if it does
   * not, they never were; an engine outside the session's database must see to the same. Throws {@link LogConflictError} when the log
   * ends elsewhere.
   */
  append(head: LogHead, events: readonly SealedEvent[]): Promise<void>;
}

/**
 * How an engine takes part in a writer's transaction. `Session` is what the writer decides in. Both calls of a {@link LogWriter} may be
 * made while the session's earlier statements are still on their way, so that they share a round trip.
 */
export interface LogEngine<Session> {
  writer(session: Session): LogWriter;
}

/** The log refused an append because it does not end where the writer thought. */
export class LogConflictError extends Error {
  override readonly name = 'LogConflictError';
}

/**
 * Why an event cannot be read: it is `damaged`, or it has a type or version that only a `newer_program` writes. Its bytes are not proved
 * here: whether they are as they were written, the chain says.
 */
export type LogFormatErrorKind = 'damaged' | 'newer_program';

/** What was read cannot be this program's log: an unknown event type or version, or data that its schema refuses. */
export class LogFormatError extends Error {
  override readonly name = 'LogFormatError';
  readonly kind: LogFormatErrorKind;

  constructor(message: string, { kind = 'damaged', cause }: { kind?: LogFormatErrorKind; cause?: unknown } = {}) {
    super(message, { cause });
    this.kind = kind;
  }
}
