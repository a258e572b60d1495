import type { Report } from '../domain/job/purpose.ts';
import { type JobKind, type JobResult } from '../protocol/job-kinds/registry.ts';

type Reports = { readonly [K in JobKind]: (result: JobResult<K>) => Report };

/** What the log keeps of each kind's result. Total over the kinds: a new one does not compile until someone has thought about it here. */
const reports: Reports = {
  diagnose_host: () => ({ kind: 'other' }),
  build: ({ artifact_sha256, artifact_bytes }) => ({ kind: 'built', artifact_sha256, artifact_bytes }),
  ensure_application: (result) =>
    result.state === 'done'
      ? { kind: 'done' }
      : { kind: 'ready', address: result.endpoint?.address ?? null, port: result.endpoint?.port ?? null },
  ensure_database: ({ endpoint }) => ({ kind: 'database', ...endpoint }),
  publish_ingress: ({ serving }) => ({ kind: 'route', serving }),
  teardown_application: () => ({ kind: 'removed' }),
};

/** What the log keeps of a succeeded job's result, which was checked against its kind. */
export function reportOf<K extends JobKind>(kind: K, result: JobResult<K>): Report {
  return reports[kind](result);
}
