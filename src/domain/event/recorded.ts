import type { EventOf, EventType } from './catalogue.ts';

/** Who caused an event. `database_user` and `client_address` are the database session's own; `id` is a label beside them. */
export interface Actor {
  readonly kind: 'operator' | 'agent' | 'gateway' | 'scheduler';
  readonly id: string;
  readonly database_user: string;
  readonly client_address: string | null;
}

/** What is recorded beside an event's data. */
export interface EventMetadata {
  readonly actor: Actor;
  readonly command_id: string;
  readonly correlation_id: string;
  readonly program_version: string;
  readonly epoch: number;
}

/** What every recorded event has: its place in the one total order of the fleet, and when (ms, never going backwards). */
export interface Recording {
  readonly position: number;
  readonly stream: string;
  readonly at: number;
  readonly metadata: EventMetadata;
}

/** An event of one type as it stands in the log. */
export type RecordedOf<T extends EventType> = Recording & EventOf<T>;

/** Any recorded event. */
export type RecordedEvent = { [T in EventType]: RecordedOf<T> }[EventType];
