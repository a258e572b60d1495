import * as v from 'valibot';
import { DoctorReport } from '../../src/protocol/job-kinds/diagnose-host.ts';
import type { JobDetails } from '../../src/read/job-details.ts';
import { isoTime, moment, orDash } from './format.ts';
import { jobJson } from './job.ts';
import { momentJson, pastLines } from './moment-line.ts';
import { pairLines, tableLines } from './table.ts';

/** A job for people. */
export function jobLines({ job, lease, payload, result, live, moment: shown }: JobDetails): string[] {
  return [
    ...pairLines([
      ['id', job.job_id],
      ['kind', job.kind],
      ['status', job.status + (job.failure_reason === null ? '' : ` (${job.failure_reason})`)],
      ['for', job.node_id === null ? `pool ${orDash(job.pool)}` : `node ${job.node_id}`],
      ['node', orDash(job.leased_to)],
      ['attempt', `${job.attempt} of ${job.max_attempts}`],
      ['queued', `${moment(job.queued_at)} at position ${job.queued_position}`],
      ['leased', moment(job.leased_at)],
      ['finished', moment(job.finished_at)],
      ...(lease === null ? [] : [['lease ends', moment(lease.expires_at)] as const]),
      ...(live ? [['payload', payload === null ? 'erased' : JSON.stringify(payload)] as const] : []),
    ]),
    ...resultLines(result),
    ...pastLines(shown, live),
  ];
}

function resultLines(result: unknown): string[] {
  if (result === null) return [];
  if (!v.is(DoctorReport, result)) return ['', 'result', JSON.stringify(result, null, 2)];
  const findings = tableLines(result.checks, [
    { heading: 'CHECK', value: ({ check }) => check },
    { heading: 'STATUS', value: ({ status }) => status },
    { heading: 'TIME', value: ({ duration_ms }) => `${duration_ms} ms`, alignRight: true },
    { heading: 'DETAIL', value: ({ detail }) => detail },
  ]);
  return ['', ...findings];
}

/** A job for --json. */
export function jobDocument({ job, lease, payload, result, live, moment: shown }: JobDetails) {
  return {
    ...momentJson(shown),
    job: jobJson(job),
    telemetry: live ? { lease_expires_at: isoTime(lease?.expires_at ?? null), payload, result } : null,
  };
}
