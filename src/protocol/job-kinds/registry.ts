import * as v from 'valibot';
import { build } from './build.ts';
import type { JobKindDefinition } from './definition.ts';
import { diagnoseHost } from './diagnose-host.ts';
import { ensureApplication } from './ensure-application.ts';
import { ensureDatabase } from './ensure-database.ts';
import { publishIngress } from './publish-ingress.ts';
import { teardownApplication } from './teardown-application.ts';

/** Every kind of job. A new kind is one file and one line here; the agent's table of handlers then fails to compile. */
export const JOB_KINDS = {
  build,
  diagnose_host: diagnoseHost,
  ensure_application: ensureApplication,
  ensure_database: ensureDatabase,
  publish_ingress: publishIngress,
  teardown_application: teardownApplication,
} as const satisfies Readonly<Record<string, JobKindDefinition>>;

/** Name of a kind that this program knows. */
export type JobKind = keyof typeof JOB_KINDS;
/** What a job of kind `K` is given. */
export type JobPayload<K extends JobKind> = v.InferOutput<(typeof JOB_KINDS)[K]['payload']>;
/** What a job of kind `K` answers when it succeeds. */
export type JobResult<K extends JobKind> = v.InferOutput<(typeof JOB_KINDS)[K]['result']>;

/** Names of all kinds, sorted. */
export const jobKinds = (Object.keys(JOB_KINDS) as JobKind[]).sort();

/** True when this program knows the kind. */
export function isJobKind(name: string): name is JobKind {
  return Object.hasOwn(JOB_KINDS, name);
}

/** What parsing by a kind comes to: the value, or the first thing that is wrong, in one line and without the value. */
export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

/** Checks a payload against its kind. */
export function parseJobPayload<K extends JobKind>(kind: K, payload: unknown): Parsed<JobPayload<K>> {
  return parse<JobPayload<K>>(JOB_KINDS[kind].payload, payload);
}

/** Checks a succeeded job's result against its kind. */
export function parseJobResult<K extends JobKind>(kind: K, result: unknown): Parsed<JobResult<K>> {
  return parse<JobResult<K>>(JOB_KINDS[kind].result, result);
}

function parse<T>(schema: v.GenericSchema<unknown, T>, value: unknown): Parsed<T> {
  const parsed = v.safeParse(schema, value, { abortEarly: true });
  return parsed.success ? { ok: true, value: parsed.output } : { ok: false, problem: firstProblem(parsed.issues[0]) };
}

/** valibot's own message quotes what it received, which may be anything; the path and the expectation say enough. */
function firstProblem(issue: v.BaseIssue<unknown>): string {
  return `${v.getDotPath(issue) ?? 'value'}: expected ${issue.expected ?? 'something else'}`;
}
