import { caEvents } from '../ca/events.ts';
import { certificateEvents } from '../certificate/events.ts';
import { checkpointEvents } from '../checkpoint/events.ts';
import { databaseEvents } from '../database/events.ts';
import { deploymentEvents } from '../deployment/events.ts';
import { ingressEvents } from '../ingress/events.ts';
import { jobEvents } from '../job/events.ts';
import { nodeEvents } from '../node/events.ts';
import { fleetWideEvents, poolEvents } from '../pool/events.ts';
import type { DataOf } from './definition.ts';

/** Every event type of the fleet. `docs/events.md` is generated from it. */
export const catalogue = {
  ...nodeEvents,
  ...certificateEvents,
  ...caEvents,
  ...jobEvents,
  ...poolEvents,
  ...fleetWideEvents,
  ...deploymentEvents,
  ...ingressEvents,
  ...databaseEvents,
  ...checkpointEvents,
} as const;

/** The name of an event type. */
export type EventType = keyof typeof catalogue;

/** All event types, in the catalogue's order. */
export const EVENT_TYPES = Object.keys(catalogue) as readonly EventType[];

/** Data of one event type at its current version. */
export type EventData<T extends EventType> = DataOf<(typeof catalogue)[T]>;

/** An event of one type, as a decision makes it. */
export interface EventOf<T extends EventType> {
  readonly type: T;
  readonly data: EventData<T>;
}

/** Any event of the fleet: a union that narrows on `type`. */
export type FleetEvent = { [T in EventType]: EventOf<T> }[EventType];

/** An event and the stream of the entity whose command decided it. */
export interface NewEvent {
  readonly stream: string;
  readonly event: FleetEvent;
}

/** Tells whether a name is one of the catalogue's types. */
export function isEventType(name: string): name is EventType {
  return Object.hasOwn(catalogue, name);
}
