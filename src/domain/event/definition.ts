import { type GenericSchema, type InferOutput, parse } from 'valibot';

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

/** The upcast of a version whose data is as good at the next one, which only allows more. */
export function unchanged<T>(data: T): T {
  return data;
}

/** The data of an event definition. */
export type DataOf<D> = D extends EventDefinition<infer S> ? InferOutput<S> : never;

/**
 * Brings data that was written at an earlier version to today's, step by step; each step checks what it is given. Throws for a version
 * that is newer than this program or was never written, and for data that is not of its version.
 */
export function upcast(definition: EventDefinition, version: number, written: unknown): unknown {
  if (version > definition.version) throw new Error(`version ${version} is newer than this program`);
  let data = written;
  for (let from = version; from < definition.version; from += 1) {
    const step = definition.earlier[from];
    if (step === undefined) throw new Error(`version ${from} is unknown`);
    data = step.upcast(parse(step.data, data) as never);
  }
  return data;
}
