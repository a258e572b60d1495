import type { FleetEvent, NewEvent } from './event/catalogue.ts';
import type { RefusalCode } from './refusal.ts';
import type { Refusal } from './result.ts';

/** Scalars and flat lists that a command answers with; remembered with the command, so never a secret. */
export type Reply = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** A body that belongs to an event which holds only its digest. It lies in an erasable table. */
export interface Body {
  readonly sha256: string;
  readonly jobId: string;
  readonly role: 'payload' | 'result';
  readonly text: string;
}

/** The outcome of deciding one command: events (perhaps none), or a refusal, which may be put on record by events of its own. */
export type Decision =
  | { readonly events: readonly NewEvent[]; readonly reply: Reply; readonly bodies: readonly Body[] }
  | { readonly refusal: Refusal; readonly record?: readonly NewEvent[] };

/** Nothing is to be done: what was asked for is so already. */
export function nothing(reply: Reply = {}): Decision {
  return { events: [], reply, bodies: [] };
}

/** Appends events to one entity's stream. */
export function append(stream: string, ...events: readonly FleetEvent[]): Decision {
  return { events: events.map((event) => ({ stream, event })), reply: {}, bodies: [] };
}

/** Adds what the caller is told to an accepted decision. */
export function replying(decision: Decision, reply: Reply): Decision {
  return 'refusal' in decision ? decision : { ...decision, reply };
}

/** Adds events of other streams that follow from an accepted decision. */
export function following(decision: Decision, events: readonly NewEvent[]): Decision {
  return 'refusal' in decision ? decision : { ...decision, events: [...decision.events, ...events] };
}

/** Adds bodies to an accepted decision. */
export function withBodies(decision: Decision, ...bodies: readonly Body[]): Decision {
  return 'refusal' in decision ? decision : { ...decision, bodies };
}

/** Refuses a command, with the facts that explain it. */
export function refuse(code: RefusalCode, details: Refusal['details'] = {}): Decision {
  return { refusal: { code, details } };
}

/** As {@link refuse}, and an event says that it was attempted. */
export function refuseOnRecord(
  code: RefusalCode,
  details: Refusal['details'],
  stream: string,
  event: FleetEvent,
): Decision {
  return { refusal: { code, details }, record: [{ stream, event }] };
}

/**
 * What time it is for a decision, in ms. `now` is the database's clock, for expiries; `at` is what will be recorded, which never
 * goes backwards along the log. They are never mixed; where they are far apart, no certificate is issued (`skewMs`).
 */
export interface DecisionTime {
  readonly now: number;
  readonly at: number;
}
