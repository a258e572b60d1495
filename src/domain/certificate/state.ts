/** A node's certificate: the row of `fleet_node_certificates`. `certificate_id` is the serial number in hex, times are ms. */
export interface CertificateState {
  readonly certificate_id: string;
  readonly node_id: string;
  readonly purpose: 'agent';
  readonly cause: 'enrollment' | 'renewal' | 'reenrollment';
  /** Of the enrolment secret that was used up for it; null for a renewal. */
  readonly secret_sha256: string | null;
  readonly secret_expires_at: number | null;
  readonly public_key_spki: string;
  readonly tbs_sha256: string;
  readonly issuer_ca_sha256: string;
  readonly not_before: number;
  readonly not_after: number;
  readonly replaces_id: string | null;
  readonly fingerprint: string | null;
  readonly certificate_pem: string | null;
  readonly authorized_at: number;
  /** Tells which of two certificates is the older one. */
  readonly authorized_position: number;
  readonly issued_at: number | null;
  readonly first_used_at: number | null;
  readonly revoked_at: number | null;
  readonly revoked_reason: string | null;
}
