import type { EventData } from '../event/catalogue.ts';
import type { Actor } from '../event/recorded.ts';
import type { BlockingReason } from './events.ts';
import type { RotationStatus } from './state.ts';

/** When something was recorded (ms), and where in the log. */
export interface AuditMoment {
  readonly position: number;
  readonly at: number;
}

/** Something that somebody did: the database user and address are the session's own, the id is a label beside them. */
export interface AuditAct extends AuditMoment {
  readonly actor: Actor;
}

/** What the log tells of a certificate. Fields are null for what did not happen. */
export interface CertificateAudit {
  readonly certificate_id: string;
  readonly node_id: string;
  readonly issuer_ca_sha256: string;
  readonly cause: EventData<'certificate_authorized'>['cause'];
  readonly not_after: number;
  readonly replaces_id: string | null;
  readonly authorized: AuditMoment;
  readonly issued: AuditMoment | null;
  readonly first_used: AuditMoment | null;
  readonly revoked: (AuditMoment & { readonly reason: RevocationCause }) | null;
}

/** Why a certificate ended: an event of its own, or the rotation that it did not survive. */
export type RevocationCause = EventData<'certificates_revoked'>['reason'] | 'rotation_completed';

/** How a node went through a rotation. */
export interface NodeAudit {
  readonly node_id: string;
  readonly name: string | null;
  /** The first use of a certificate of the new CA. */
  readonly moved: AuditMoment | null;
  /** From the beginning of the rotation, or the node's first certificate if that came later, to its move; ms. */
  readonly overlap_ms: number | null;
  /** Those in force at the beginning and those authorised since, in the order of the log. */
  readonly certificates: readonly CertificateAudit[];
}

/** A step of a rotation that was refused. */
export interface RefusedAttempt extends AuditAct {
  readonly action: EventData<'ca_rotation_refused'>['action'];
  readonly reason: EventData<'ca_rotation_refused'>['reason'];
  readonly blocking_nodes: readonly {
    readonly node_id: string;
    readonly name: string | null;
    readonly reason: BlockingReason;
  }[];
  readonly blocking_gateways: readonly string[];
}

/** A gateway's own certificate. */
export type GatewayCertificateAudit = AuditAct &
  Pick<EventData<'gateway_certificate_issued'>, 'certificate_id' | 'fingerprint' | 'issuer_ca_sha256' | 'cause'>;

/** What should not be found in a log, or has to be explained by somebody; docs/operations.md says what each can miss. */
export type AnomalyKind =
  | 'attempt_refused'
  | 'begun_while_running'
  | 'switched_without_begin'
  | 'ended_without_begin'
  | 'completed_without_switch'
  | 'issued_by_neither_ca'
  | 'issued_by_new_ca_before_switch'
  | 'issued_by_old_ca_after_switch'
  | 'issued_by_old_ca_after_completion'
  | 'issued_by_aborted_ca'
  | 'authorized_never_issued'
  | 'used_after_revocation'
  | 'identity_conflict'
  | 'node_never_moved';

/** An anomaly, where it shows, and whom it concerns. */
export interface Anomaly extends AuditMoment {
  readonly kind: AnomalyKind;
  readonly node_id: string | null;
  readonly name: string | null;
  readonly certificate_id: string | null;
}

/** Everything that the log tells of a rotation. `begun` is null for one whose beginning it does not tell. */
export interface RotationAudit {
  readonly rotation_id: string;
  readonly status: RotationStatus;
  readonly previous_ca_sha256: string | null;
  readonly ca_sha256: string;
  readonly begun: AuditAct | null;
  readonly switched: (AuditAct & { readonly gateways: readonly string[] }) | null;
  /** Its completion or abort. */
  readonly ended: (AuditAct & { readonly revoked_certificates: number }) | null;
  readonly refused: readonly RefusedAttempt[];
  readonly nodes: readonly NodeAudit[];
  readonly gateway_certificates: readonly GatewayCertificateAudit[];
  readonly anomalies: readonly Anomaly[];
}

/** An audit of the fleet's CA. `outside` is what belongs to no rotation. */
export interface CaAuditReport {
  readonly rotations: readonly RotationAudit[];
  readonly outside: Pick<RotationAudit, 'refused' | 'anomalies'>;
}
