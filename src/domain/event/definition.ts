import type { GenericSchema, InferOutput } from 'valibot';

/**
 * One event type: its current version and a schema for each version that was ever written.
 * `upcast[n]` turns data of version n into data of version n + 1; the log keeps what was written.
 */
export interface EventDefinition<S extends GenericSchema = GenericSchema> {
  readonly version: number;
  readonly data: S;
  readonly earlier: Readonly<Record<number, { data: GenericSchema; upcast: (data: never) => unknown }>>;
}

/** Defines an event type at its first version. */
export function event<S extends GenericSchema>(data: S): EventDefinition<S> {
  return { version: 1, data, earlier: {} };
}

/** The data of an event definition. */
export type DataOf<D> = D extends EventDefinition<infer S> ? InferOutput<S> : never;
