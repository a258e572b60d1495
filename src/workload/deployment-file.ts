import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import * as v from 'valibot';
import { MOST, role } from '../domain/deployment/events.ts';
import { hostLabel, hostname, pool, slug, uuid } from '../domain/fields.ts';

const { entries } = role;

/** A role in a file: what is left out has the value that most services want. */
const FileRole = v.strictObject({
  ...entries,
  count: v.optional(entries.count, 1),
  // Nothing runs on nothing: an agent would not take it.
  cpu_millis: v.pipe(entries.cpu_millis, v.minValue(1)),
  memory_mb: v.pipe(entries.memory_mb, v.minValue(1)),
  disk_gb: v.optional(entries.disk_gb, 0),
  listens: v.optional(v.boolean(), false),
  readiness_path: v.optional(entries.readiness_path, null),
  timeout_seconds: v.optional(entries.timeout_seconds, 60),
  serves_hostnames: v.optional(v.boolean(), false),
});

/** How the artifact is built: `source` is a tar archive, named as seen from the deployment file. */
const FileBuild = v.strictObject({
  source: v.pipe(v.string(), v.minLength(1), v.maxLength(4_096)),
  command: entries.command,
  timeout_seconds: v.optional(entries.timeout_seconds, 600),
});

const DeploymentFile = v.pipe(
  v.strictObject({
    name: hostLabel,
    org_id: uuid,
    pool: v.optional(pool, 'application'),
    regions: v.pipe(v.array(slug), v.minLength(1), v.maxLength(MOST.regions)),
    environment: v.optional(
      v.strictObject({
        sealed: v.boolean(),
        members: v.optional(v.pipe(v.array(hostLabel), v.maxLength(MOST.members)), []),
      }),
      { sealed: false },
    ),
    hostnames: v.optional(v.pipe(v.array(hostname), v.maxLength(MOST.hostnames)), []),
    roles: v.pipe(v.array(FileRole), v.minLength(1), v.maxLength(MOST.roles)),
    build: v.optional(v.nullable(FileBuild), null),
  }),
  v.check(
    ({ environment: { sealed, members } }) => sealed || members.length === 0,
    'members belong to a sealed environment',
  ),
  v.check(({ roles }) => new Set(roles.map((one) => one.role)).size === roles.length, 'two roles have the same name'),
  v.check(({ hostnames }) => new Set(hostnames).size === hostnames.length, 'a hostname is named twice'),
  v.check(
    ({ roles }) => roles.filter(({ serves_hostnames }) => serves_hostnames).length <= 1,
    'only one role can serve hostnames',
  ),
  v.check(
    ({ roles }) =>
      roles.every(({ serves_hostnames, run, listens }) => !serves_hostnames || (run === 'service' && listens)),
    'a role that serves hostnames is a service that listens',
  ),
  v.check(
    ({ roles }) => roles.every(({ serves_hostnames, count }) => !serves_hostnames || count <= MOST.serving),
    `a role that serves hostnames has at most ${MOST.serving} instances`,
  ),
  v.check(
    ({ roles }) => roles.reduce((sum, { count }) => sum + count, 0) <= MOST.instances,
    `it has more than ${MOST.instances} instances in all`,
  ),
  v.check(
    ({ hostnames, roles }) => hostnames.length === 0 || roles.some(({ serves_hostnames }) => serves_hostnames),
    'there are hostnames, and no role serves them',
  ),
);
/** A deployment as an operator writes it down. */
export type DeploymentFile = v.InferOutput<typeof DeploymentFile>;

/** A file that was read, or the first thing that is wrong with it, in one line and without its content. */
export type ReadDeployment =
  | { readonly ok: true; readonly file: DeploymentFile }
  | { readonly ok: false; readonly problem: string };

/** Reads the text of a deployment file. */
export function parseDeploymentFile(text: string): ReadDeployment {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, problem: 'it is not JSON' };
  }
  const parsed = v.safeParse(DeploymentFile, value, { abortEarly: true });
  if (parsed.success) return { ok: true, file: parsed.output };
  return { ok: false, problem: describe(parsed.issues[0]) };
}

/** valibot's own message quotes what it received, which may be anything; where and what was expected says enough. */
function describe(issue: v.BaseIssue<unknown>): string {
  if (issue.type === 'check') return issue.message;
  const where = v.getDotPath(issue) ?? 'the file';
  return issue.received === 'undefined' ? `${where} is missing` : `${where}: expected ${expectation(issue)}`;
}

function expectation({ expected, type, requirement }: v.BaseIssue<unknown>): string {
  if (type === 'regex') return `text like ${String(requirement)}`;
  return expected === 'never' ? 'no such key' : (expected ?? 'something else');
}

/** What a deployment is, whatever it is called by: two files with the same digest ask for the same. */
export function specSha256(file: DeploymentFile, sourceSha256: string | null): string {
  const text = canonicalize({ ...file, build: file.build && { ...file.build, source: sourceSha256 } });
  if (text === undefined) throw new Error('a deployment file is not JSON');
  return createHash('sha256').update(text).digest('hex');
}
