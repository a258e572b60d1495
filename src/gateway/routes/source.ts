import { hash } from 'node:crypto';
import * as v from 'valibot';
import { JobId, LeaseToken } from '../../protocol/identifiers.ts';
import { LEASE_TOKEN_HEADER } from '../../protocol/routes.ts';
import type { AgentRoute } from '../agent-route.ts';
import { problem } from '../answer.ts';
import { sourceOf, streamSource } from '../source-stream.ts';

/**
 * GET /v1/agent/jobs/:id/source with the lease's token in a header -> 200, the bytes of the build's source, for as long as the lease is held
 * and the certificate good | 409 lease_conflict | 404 for what cannot be a job's id.
 */
export const source: AgentRoute<undefined> = {
  name: 'source',
  body: undefined,
  async handle({ agent, fingerprint, context }, services) {
    const jobId = context.req.param('id');
    if (!v.is(JobId, jobId)) return problem('not_found');
    const token = context.req.header(LEASE_TOKEN_HEADER);
    if (!v.is(LeaseToken, token)) return problem('lease_conflict');
    const lease = { jobId, nodeId: agent.node.node_id, tokenSha256: hash('sha256', token) };
    const found = await sourceOf(services.pool, lease);
    if (found === undefined) return problem('lease_conflict');
    const cut = () => {
      services.log.warn({ job: jobId, node: agent.node.node_id }, 'a download was cut: its lease or certificate ended');
      context.env.outgoing.destroy();
    };
    return { status: 200, stream: streamSource(services, lease, fingerprint, found, cut), ...found };
  },
};
