import { hash, randomBytes } from 'node:crypto';
import { recordFirstUseCommand } from '../../commands/certificate.ts';
import { confirmCleanupCommand } from '../../commands/cleanup.ts';
import { leaseJobCommand } from '../../commands/job.ts';
import { recordHostFactsCommand } from '../../commands/node.ts';
import { recoverNodeCommand } from '../../commands/sweep.ts';
import { leasableKinds, mayLease } from '../../domain/job/lease.ts';
import { type HostFacts, hostFactsDiffer } from '../../domain/node/host-facts.ts';
import { LeaseRequest } from '../../protocol/lease.ts';
import type { CommandOutcome } from '../../transactor/command.ts';
import { type AgentCall, type AgentRoute, commandOptions, goneSignal } from '../agent-route.ts';
import { type Answer, lostNode, problem, refused, success, withoutWork } from '../answer.ts';
import { cleanupOf } from '../cleanup.ts';
import { reading } from '../database.ts';
import type { HostSightings } from '../host-sightings.ts';
import type { Services } from '../services.ts';
import { toVersionToken } from '../version-token.ts';

type Call = AgentCall<LeaseRequest>;

/** A node that is well is heard at least this often, however long its agent would wait: silence begins to count with a request. */
const LONGEST_WAIT_MS = 20_000;

/** Facts that changed are recorded no more often than this, so that a host that cannot make up its mind does not fill the log. */
const FACTS_EVERY_MS = 10_000;

/**
 * POST /v1/agent/lease -> 200 {job or null, target_version, log_head} | 403 node_not_active or node_lost | 503. With `wait_seconds` an
 * empty answer is held back until a job is queued; who asks is authenticated again each time something has changed, and once more before
 * the answer.
 */
export const lease: AgentRoute<LeaseRequest> = {
  name: 'lease',
  body: LeaseRequest,
  async handle(asked, services) {
    // Nobody would learn that the agent is alive: let it try another gateway.
    if (services.liveness.stalled) return { ...problem('unavailable'), close: true };
    const recovered = await recover(asked, services);
    if ('answer' in recovered) return recovered.answer;
    const { call } = recovered;
    const refusal = await recordPresence(call, services);
    if (refusal !== undefined) return refusal;
    const waitMs = Math.min((call.body.wait_seconds ?? 0) * 1_000, LONGEST_WAIT_MS);
    // A draining node is not kept waiting for what it will not get.
    return waitMs === 0 || call.agent.node.status !== 'active'
      ? ((await tryLease(call, services)) ?? empty(call, services))
      : waitForJob(call, services, waitMs);
  },
};

/**
 * An unhealthy node that asks is well again, and is served by the same request. First it is written that it was heard: a sweep that came
 * in between would call it silent once more. Any other node is left as it is.
 */
async function recover(call: Call, services: Services): Promise<{ readonly call: Call } | { readonly answer: Answer }> {
  const { transactor, liveness, loader } = services;
  const { agent, fingerprint, tick, body } = call;
  if (agent.node.status !== 'unhealthy') return { call };
  liveness.heard(agent.node.node_id, tick.nowMs, body.capabilities.host.data_disk_free_gb);
  await liveness.written();
  const recovered = await transactor.execute(recoverNodeCommand, { fingerprint }, commandOptions(call));
  if (!recovered.ok) return { answer: refused(recovered.refusal) };
  const now = await loader.identify(fingerprint);
  if (!now.result.ok) return { answer: refused(now.result.refusal) };
  return { call: { ...call, agent: now.result.value, tick: now.tick } };
}

/** Records what a lease request says besides asking: that the certificate is in use, the host's facts, that the node lives. */
async function recordPresence(call: Call, services: Services): Promise<Answer | undefined> {
  const { transactor, liveness, hosts } = services;
  const { agent, tick, body, fingerprint } = call;
  const { node, certificate } = agent;
  if (certificate.first_used_at === null) {
    const used = await transactor.execute(recordFirstUseCommand, { fingerprint }, commandOptions(call));
    if (!used.ok) return refused(used.refusal);
  }
  noteHost(call, hosts);
  const { host } = body.capabilities;
  if (!mayLease(node, body.capabilities.kinds)) {
    liveness.heard(node.node_id, tick.nowMs, host.data_disk_free_gb);
    return unserved(call, services);
  }
  const facts = factsOf(body);
  if (hostFactsDiffer(facts, node) && tick.nowMs - (node.host_facts_at ?? 0) >= FACTS_EVERY_MS) {
    const recorded = await transactor.execute(recordHostFactsCommand, { fingerprint, facts }, commandOptions(call));
    if (!recorded.ok) return refused(recorded.refusal);
  }
  liveness.heard(node.node_id, tick.nowMs, host.data_disk_free_gb);
  return undefined;
}

/** The 403 of a node that gets no work. A lost one is told what to remove, once what it says to be gone is recorded. */
async function unserved(call: Call, { transactor, pool }: Services): Promise<Answer> {
  const { node } = call.agent;
  if (node.status !== 'lost') return withoutWork(node.status);
  const { cleaned = [] } = call.body;
  if (cleaned.length > 0) {
    const command = { fingerprint: call.fingerprint, instance_ids: cleaned };
    const confirmed = await transactor.execute(confirmCleanupCommand, command, commandOptions(call));
    if (!confirmed.ok) return refused(confirmed.refusal);
  }
  return lostNode(await cleanupOf(pool, node.node_id));
}

/** Which host asks; agents of hosts without a boot id cannot be told apart. */
function noteHost({ agent: { node }, tick, body, fingerprint, context }: Call, hosts: HostSightings): void {
  const address = context.env.incoming.socket.remoteAddress;
  if (body.boot_id === undefined || address === undefined) return;
  hosts.seen({ nodeId: node.node_id, bootId: body.boot_id, address, fingerprint, at: tick.nowMs });
}

function factsOf({ agent_version, capabilities: { host } }: LeaseRequest): HostFacts {
  return {
    cpu_count: host.cpu_count,
    memory_mb: host.memory_mb,
    kernel: toVersionToken(host.kernel),
    docker_version: host.docker_version === null ? null : toVersionToken(host.docker_version),
    agent_version,
    bridge_netfilter: host.bridge_netfilter,
    runtime: host.runtime ?? null,
    ingress: host.ingress ?? null,
  };
}

async function waitForJob(first: Call, services: Services, waitMs: number): Promise<Answer> {
  const { loader, wakes } = services;
  const deadline = performance.now() + waitMs;
  const signal = goneSignal(first.context);
  for (let call = first; ; ) {
    const answer = await tryLease(call, services);
    if (answer !== undefined) return answer;
    const ms = deadline - performance.now();
    if (ms <= 0 || signal.aborted || wakes.stopping.aborted) return empty(call, services);
    await wakes.moved(call.tick, { ms, signal });
    const { tick, result } = await loader.identify(call.fingerprint);
    if (!result.ok) return refused(result.refusal);
    call = { ...call, agent: result.value, tick };
    const { node } = call.agent;
    // Nothing has been heard of it since it asked. If it is there, it asks again, and is well by that.
    if (node.status === 'unhealthy') return withoutJob(call, services);
    if (node.status !== 'active') return unserved(call, services);
  }
}

function empty(call: Call, services: Services): Answer {
  const { status } = call.agent.node;
  return status === 'active' ? withoutJob(call, services) : withoutWork(status);
}

function withoutJob({ tick }: Call, { config }: Services): Answer {
  return success({ job: null, target_version: config.targetVersion, log_head: tick.logHead });
}

/** Asks for a job where there may be one. Undefined when there is none. */
async function tryLease(call: Call, services: Services): Promise<Answer | undefined> {
  const { work, leaseTurns, loader } = services;
  const { request_id: requestId, capabilities } = call.body;
  const { node } = call.agent;
  const question = { node, kinds: leasableKinds(node, capabilities.kinds), requestId };
  if (!(await work.offered(question, call.tick))) return undefined;
  return leaseTurns.take(async (waited) => {
    if (waited && !(await work.offered(question, await loader.tick()))) return undefined;
    return grant(call, services);
  });
}

/** Asks until there is a job that can be done, or none: one whose payload is gone fails, and must not stop those behind it. */
async function grant(call: Call, services: Services): Promise<Answer | undefined> {
  for (;;) {
    const decided = await decideLease(call, services);
    if (decided !== 'again') return decided;
  }
}

/**
 * Decides the lease under the lock. The command has an id of its own, not the request's: a repeated request is decided again, so that
 * the job comes with a fresh token (the old one was never stored, and may have been lost on the way).
 */
async function decideLease(
  call: Call,
  { transactor, config, metrics, pool, log }: Services,
): Promise<Answer | 'again' | undefined> {
  const token = randomBytes(32).toString('base64url');
  const askedAt = Date.now();
  const outcome = await transactor.execute(
    leaseJobCommand,
    {
      fingerprint: call.fingerprint,
      request_id: call.body.request_id,
      kinds: call.body.capabilities.kinds,
      token_sha256: hash('sha256', token),
      lease_ms: config.leaseMs,
    },
    commandOptions(call),
  );
  if (!outcome.ok) return refused(outcome.refusal);
  const { failed_job_id: failed } = outcome.reply;
  if (failed !== undefined) {
    log.error({ job: failed }, 'the payload of a job is gone, so it has failed');
    return 'again';
  }
  const granted = readGrant(outcome);
  if (granted === undefined) return undefined;
  const { rows } = await reading(() =>
    pool.query<{ body: string }>({
      name: 'gateway_payload',
      text: `SELECT body FROM telemetry.bodies WHERE job_id = $1 AND role = 'payload' AND encode(sha256(convert_to(body, 'UTF8')), 'hex') = $2`,
      values: [granted.jobId, granted.payloadSha256],
    }),
  );
  const [payload] = rows;
  // Erased since the decision: deciding the same request again fails the job.
  if (payload === undefined) return 'again';
  metrics.leaseGranted();
  // By this gateway's clock and from before the decision: the agent compares it with the Date of this answer, and errs to the safe side.
  const expiresAt = new Date(askedAt + config.leaseMs).toISOString();
  const job = { id: granted.jobId, kind: granted.kind, lease_token: token, lease_expires_at: expiresAt };
  const answer = { target_version: config.targetVersion, log_head: call.tick.logHead };
  // The payload is canonical JSON already.
  return {
    status: 200,
    text: `{"job":${JSON.stringify(job).slice(0, -1)},"payload":${payload.body}},${JSON.stringify(answer).slice(1)}`,
  };
}

function readGrant({ reply }: Extract<CommandOutcome, { ok: true }>) {
  const { job_id: jobId, kind, payload_sha256: payloadSha256 } = reply;
  if (jobId === null) return undefined;
  if (typeof jobId !== 'string' || typeof kind !== 'string' || typeof payloadSha256 !== 'string') {
    throw new Error('a granted lease names no job');
  }
  return { jobId, kind, payloadSha256 };
}
