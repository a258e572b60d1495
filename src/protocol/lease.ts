import * as v from 'valibot';
import {
  AgentVersion,
  BootId,
  InstanceId,
  JobId,
  KindName,
  LeaseToken,
  LogHead,
  RequestId,
  Timestamp,
} from './identifiers.ts';
import { CLEANUP_MAX, ERROR_MESSAGE_MAX_LENGTH, KINDS_MAX, LEASE_WAIT_MAX_SECONDS } from './limits.ts';
import { boundedInteger, boundedText } from './text.ts';

/** What an agent says of its host with each lease; null where the host could not say. */
export const HostFacts = v.strictObject({
  cpu_count: boundedInteger(1, 65_536),
  memory_mb: boundedInteger(1, 1_073_741_824),
  /** Free space of the data volume. */
  data_disk_free_gb: v.nullable(boundedInteger(0, 1_073_741_824)),
  kernel: boundedText(128),
  docker_version: v.nullable(boundedText(64)),
  /** Live value of net.bridge.bridge-nf-call-iptables; null where the module is not loaded. */
  bridge_netfilter: v.nullable(v.boolean()),
  /** How it runs workloads. Absent from agents that run none. */
  runtime: v.optional(v.picklist(['docker', 'process'])),
  /** What serves hostnames on it; null where nothing does. */
  ingress: v.optional(v.nullable(v.picklist(['caddy', 'embedded']))),
});
/** What an agent says of its host with each lease. */
export type HostFacts = v.InferOutput<typeof HostFacts>;

/**
 * `POST /v1/agent/lease`. The same `request_id` again means "the answer was lost": it gets the same job with a fresh token.
 * `wait_seconds` lets the gateway hold the request until a job is queued; absent or 0 answers at once.
 */
export const LeaseRequest = v.strictObject({
  request_id: RequestId,
  agent_version: AgentVersion,
  capabilities: v.strictObject({
    kinds: v.pipe(
      v.array(KindName),
      v.maxLength(KINDS_MAX),
      v.check((kinds) => new Set(kinds).size === kinds.length, 'Names a kind twice'),
    ),
    host: HostFacts,
  }),
  log_head: v.optional(LogHead),
  wait_seconds: v.optional(boundedInteger(0, LEASE_WAIT_MAX_SECONDS)),
  /** Of the host; two that alternate under one identity are a copied disk. Absent where the host has none. */
  boot_id: v.optional(BootId),
  /** Instances of earlier cleanup lists that are gone from the host for sure. They are not listed again. */
  cleaned: v.optional(v.pipe(v.array(InstanceId), v.maxLength(CLEANUP_MAX))),
});
/** `POST /v1/agent/lease`. */
export type LeaseRequest = v.InferOutput<typeof LeaseRequest>;

/** A job with its lease. `payload` is checked by its kind (job-kinds/registry.ts), which an older agent may not know. */
export const LeasedJob = v.object({
  id: JobId,
  kind: KindName,
  payload: v.unknown(),
  lease_token: LeaseToken,
  /** By the gateway's clock; an agent compares it with the Date header of the same answer, never with its own clock. */
  lease_expires_at: Timestamp,
});
/** A job with its lease. */
export type LeasedJob = v.InferOutput<typeof LeasedJob>;

/**
 * 200 of a lease; no job is `job: null`. `log_head` is what the agent keeps from now on, so it is the higher one of the
 * gateway's own and the one that the request carried: only the gateway can compare them.
 */
export const LeaseResponse = v.object({
  job: v.nullable(LeasedJob),
  /** The version this node should run; null when the gateway asks for none. */
  target_version: v.nullable(AgentVersion),
  log_head: LogHead,
});
/** 200 of a lease. */
export type LeaseResponse = v.InferOutput<typeof LeaseResponse>;

/** A node's status as an agent hears it: a name, open so that an older agent understands a newer gateway. */
export const NodeStatusName = v.pipe(v.string(), v.regex(/^[a-z][a-z_]{0,31}$/));

/** One instance that was fenced away from a lost node and must be removed from the host, if that generation is there. */
export const CleanupTask = v.object({
  kind: v.literal('teardown_application'),
  instance_id: InstanceId,
  generation: boundedInteger(1, Number.MAX_SAFE_INTEGER),
});
/** One instance that must be removed from the host of a lost node. */
export type CleanupTask = v.InferOutput<typeof CleanupTask>;

const message = boundedText(ERROR_MESSAGE_MAX_LENGTH);

/** 403 of a lease: the node gets no work, either for now or (lost) for ever. */
export const LeaseRefusal = v.variant('error', [
  v.object({ error: v.literal('node_not_active'), message, status: NodeStatusName }),
  v.object({ error: v.literal('node_lost'), message, cleanup: v.pipe(v.array(CleanupTask), v.maxLength(CLEANUP_MAX)) }),
]);
/** 403 of a lease. */
export type LeaseRefusal = v.InferOutput<typeof LeaseRefusal>;
