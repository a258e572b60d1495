import type * as v from 'valibot';

/** What gateway, CLI and agent share about one kind of job. Both schemas are closed and bounded. */
export interface JobKindDefinition<
  Payload extends v.GenericSchema = v.GenericSchema,
  Result extends v.GenericSchema = v.GenericSchema,
> {
  /** One line for `job queue --help`. */
  readonly summary: string;
  readonly payload: Payload;
  readonly result: Result;
}

/** Keeps the schemas' own types, which an annotation would widen. */
export function defineJobKind<Payload extends v.GenericSchema, Result extends v.GenericSchema>(
  definition: JobKindDefinition<Payload, Result>,
): JobKindDefinition<Payload, Result> {
  return definition;
}
