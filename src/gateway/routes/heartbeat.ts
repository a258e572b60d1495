import { hash } from 'node:crypto';
import * as v from 'valibot';
import { JobId } from '../../protocol/identifiers.ts';
import { HeartbeatRequest } from '../../protocol/jobs.ts';
import type { AgentRoute } from '../agent-route.ts';
import { problem, success } from '../answer.ts';
import { extendLease } from '../leases.ts';

/** POST /v1/agent/jobs/:id/heartbeat -> 200 {lease_expires_at} | 409 lease_conflict | 404 for what cannot be a job's id. */
export const heartbeat: AgentRoute<HeartbeatRequest> = {
  name: 'heartbeat',
  body: HeartbeatRequest,
  async handle({ agent, tick, body, context }, { pool, writers, config, liveness }) {
    const jobId = context.req.param('id');
    if (!v.is(JobId, jobId)) return problem('not_found');
    const askedAt = Date.now();
    const held = { jobId, nodeId: agent.node.node_id, tokenSha256: hash('sha256', body.lease_token) };
    if (!(await extendLease({ pool, writers }, held, config.leaseMs))) return problem('lease_conflict');
    liveness.heard(agent.node.node_id, tick.nowMs);
    const answer = success({ lease_expires_at: new Date(askedAt + config.leaseMs).toISOString() });
    // The lease is extended, but that the node is alive is not written: its next heartbeat had better go to another gateway.
    return liveness.stalled ? { ...answer, close: true } : answer;
  },
};
