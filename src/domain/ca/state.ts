/** A CA that the fleet trusts: its fingerprint, its public certificate, and its end (ms). */
export interface TrustedCa {
  readonly sha256: string;
  readonly pem: string;
  readonly not_after: number;
}

/** The fleet's CA as the log tells it: the one row of `fleet_ca`. In a rotation two CAs are trusted and one of them issues. */
export interface CaState {
  readonly name: 'fleet';
  readonly current_ca_sha256: string;
  /** The only CA from which agents' certificates may be authorised. */
  readonly issuing_ca_sha256: string;
  readonly rotation_id: string | null;
  readonly next_ca_sha256: string | null;
  readonly trusted: readonly TrustedCa[];
  readonly initialized_at: number;
}

/** How far a rotation has come. */
export type RotationStatus = 'begun' | 'issuing' | 'completed' | 'aborted';

/** A rotation of the CA: the row of `ca_rotations`. Times are ms. */
export interface RotationState {
  readonly rotation_id: string;
  readonly status: RotationStatus;
  readonly previous_ca_sha256: string;
  readonly ca_sha256: string;
  readonly begun_at: number;
  readonly issuing_at: number | null;
  readonly ended_at: number | null;
  readonly refused_attempts: number;
  readonly revoked_certificates: number;
}

/** What a gateway last said of itself (telemetry, not a fold): which CAs it trusts, and when (ms). */
export interface GatewayBeacon {
  readonly program: string;
  readonly kind: string;
  readonly trusted_ca_sha256s: readonly string[];
  readonly beacon_at: number;
}

/** A gateway whose last beacon is older than this is gone: it beats once a second, and takes its beacon away when it stops. */
export const GATEWAY_LIVE_MS = 15_000;
