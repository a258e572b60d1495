import type { RowOf } from '../../projections/registry.ts';
import type { CaState, RotationState } from '../domain/ca/state.ts';
import type { CertificateState } from '../domain/certificate/state.ts';
import type { EventRow } from '../domain/event/state.ts';
import type { Pool } from '../domain/fields.ts';
import type { JobState, JobStatus, LeaseGuard } from '../domain/job/state.ts';
import type { NodeLiveness, NodeState, NodeStatus } from '../domain/node/state.ts';
import type { Rows } from '../transactor/row-view.ts';
import type { ProgramRow } from './database.ts';

/** The state of the log that a view shows: its last position and when that was recorded (ms). Zero for an empty log. */
export interface ViewMoment {
  readonly position: number;
  readonly at: number;
  /** The clock to measure ages by (ms): the database's for the live view, the moment itself for the past. */
  readonly nowMs: number;
}

/** Which nodes are asked for; everything absent means any. */
export interface NodeFilter {
  readonly pool?: Pool | undefined;
  readonly status?: NodeStatus | undefined;
}

/** Which jobs are asked for, the newest first, at most `limit`. */
export interface JobFilter {
  readonly nodeId?: string | undefined;
  readonly status?: JobStatus | undefined;
  readonly kind?: string | undefined;
  readonly limit: number;
}

/** Which certificates are asked for, the newest authorised first, at most `limit`. */
interface CertificateFilter {
  readonly nodeId?: string | undefined;
  /** Only those in force at this time (ms): not revoked, not ended. Ones that were never issued count: they may still be. */
  readonly inForceAt?: number | undefined;
  readonly limit: number;
}

/** A certificate by its serial number or its fingerprint, or by the beginning of one: lower-case hex. */
export interface CertificateReference {
  readonly by: 'certificate_id' | 'fingerprint';
  readonly beginning: string;
}

/** What is not in the log and therefore only known of the present. */
export interface Telemetry {
  liveness(nodeIds: readonly string[]): Promise<ReadonlyMap<string, NodeLiveness>>;
  lease(jobId: string): Promise<LeaseGuard | undefined>;
  /** Gateways that have said something of themselves, alive or not, by name. */
  gateways(): Promise<readonly ProgramRow[]>;
  /** Canonical JSON text of a job's payload or result; `undefined` when it was erased or never was. */
  body(jobId: string, role: 'payload' | 'result'): Promise<string | undefined>;
}

/**
 * The fleet as read commands see it. The live tables and the folded past answer with the same rows, so a command is written once.
 * `telemetry` is null in the past.
 */
export interface FleetView {
  readonly moment: ViewMoment;
  readonly telemetry: Telemetry | null;
  /** Rows of folded tables, looked up as commands look them up. */
  readonly rows: Rows;
  /** In the order of pool and name. */
  nodes(filter: NodeFilter): Promise<readonly NodeState[]>;
  /** Nodes of this name or id, or whose id begins with it; at most a handful. */
  nodesMatching(reference: string): Promise<readonly NodeState[]>;
  /** The newest authorised first. */
  certificates(nodeId: string): Promise<readonly CertificateState[]>;
  certificatesOf(filter: CertificateFilter): Promise<readonly CertificateState[]>;
  /** At most a handful. */
  certificatesMatching(reference: CertificateReference): Promise<readonly CertificateState[]>;
  /** The fleet's CA; undefined while the log does not know it. */
  ca(): Promise<CaState | undefined>;
  rotation(rotationId: string): Promise<RotationState | undefined>;
  jobs(filter: JobFilter): Promise<readonly JobState[]>;
  /** Jobs of this id, or whose id begins with it; at most a handful. */
  jobsMatching(reference: string): Promise<readonly JobState[]>;
  /** The last `limit` events of a node, its jobs aside, oldest first. */
  timeline(nodeId: string, limit: number): Promise<readonly EventRow[]>;
  firewalls(): Promise<readonly RowOf<'pool_firewalls'>[]>;
}

/** A reference that fits more rows than this is ambiguous in any case. */
export const MATCHES_MAX = 5;
