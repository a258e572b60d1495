import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';
import * as v from 'valibot';
import { completeJobCommand } from '../../commands/job.ts';
import type { CompleteJob } from '../../domain/job/complete.ts';
import { JobId } from '../../protocol/identifiers.ts';
import { isJobKind, parseJobResult } from '../../protocol/job-kinds/registry.ts';
import { CompleteRequest } from '../../protocol/jobs.ts';
import { type AgentRoute, commandOptions } from '../agent-route.ts';
import { type Answer, invalid, problem, refused, success } from '../answer.ts';
import { reading } from '../database.ts';
import { reportOf } from '../report.ts';
import type { Services } from '../services.ts';

/**
 * POST /v1/agent/jobs/:id/complete -> 200 {} | 409 lease_conflict | 400 for a result that is not the kind's. A job that is handed back
 * because its agent stops goes to the queue again. The result becomes an erasable body, its digest the event.
 */
export const complete: AgentRoute<CompleteRequest> = {
  name: 'complete',
  body: CompleteRequest,
  async handle(call, services) {
    const { fingerprint, body, context } = call;
    const jobId = context.req.param('id');
    if (!v.is(JobId, jobId)) return problem('not_found');
    const tokenSha256 = hash('sha256', body.lease_token);
    const kind = await kindOfJob(services, jobId, tokenSha256);
    if (kind === undefined) return problem('lease_conflict');
    const ended = readResult(kind, body);
    if ('status' in ended) return ended;
    const command = { fingerprint, job_id: jobId, token_sha256: tokenSha256, ...ended };
    const outcome = await services.transactor.execute(completeJobCommand, command, commandOptions(call));
    return outcome.ok ? success({}) : refused(outcome.refusal);
  },
};

/**
 * The kind of the job that was last leased with this token: what its result is checked against. Whether the token still counts, and
 * for this node, is for the decision. A token that is not there never will be: the row was committed before it was handed out.
 */
async function kindOfJob({ pool }: Services, jobId: string, tokenSha256: string): Promise<string | undefined> {
  const { rows } = await reading(() =>
    pool.query<{ kind: string }>({
      name: 'gateway_kind_of_job',
      text: 'SELECT kind FROM fleet.jobs WHERE job_id = $1 AND lease_token_sha256 = $2',
      values: [jobId, tokenSha256],
    }),
  );
  return rows[0]?.kind;
}

/** How a job ended, as its decision takes it. */
type Ended = Pick<CompleteJob, 'outcome' | 'result' | 'result_sha256' | 'report'>;

function readResult(kind: string, request: CompleteRequest): Ended | Answer {
  if (request.outcome === 'failed') {
    const outcome = request.result.code === 'agent_stopping' ? 'returned' : 'failed';
    return ended(outcome, request.result, { kind: 'other' });
  }
  if (!isJobKind(kind)) return invalid('The kind of the job is not known here.');
  const parsed = parseJobResult(kind, request.result);
  if (!parsed.ok) return invalid(`result: ${parsed.problem}`);
  return ended('succeeded', parsed.value, reportOf(kind, parsed.value));
}

function ended(outcome: CompleteJob['outcome'], value: object, report: CompleteJob['report']): Ended {
  const result = canonicalize(value);
  if (result === undefined) throw new Error('a result has no JSON form');
  return { outcome, result, result_sha256: hash('sha256', result), report };
}
