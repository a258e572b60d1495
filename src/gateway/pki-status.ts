import type { PkiHolder } from './pki-holder.ts';

/** What a gateway says of its PKI files, in its beacon and on /status. Fingerprints are SHA-256 of the DER; times ISO 8601. */
export interface PkiStatus {
  readonly trusted_ca_sha256s: readonly string[];
  readonly issuer_ca_sha256: string;
  readonly previous_issuer_ca_sha256: string | null;
  readonly serving: {
    readonly fingerprint_sha256: string;
    readonly issuer_ca_sha256: string;
    readonly not_before: string;
    readonly not_after: string;
  };
  /** When the set in force was loaded. */
  readonly loaded_at: string;
  /** Why the files as they lie there now are not in force, null when they are. */
  readonly error: { readonly code: string; readonly message: string; readonly since: string } | null;
}

/** The state of the holder as it is told to operators and to other programs. */
export function pkiStatus({ current, loadedAtMs, error }: PkiHolder): PkiStatus {
  const { serving, signer, previousSigner, trustedCaSha256s } = current;
  return {
    trusted_ca_sha256s: trustedCaSha256s,
    issuer_ca_sha256: signer.caSha256,
    previous_issuer_ca_sha256: previousSigner?.caSha256 ?? null,
    serving: {
      fingerprint_sha256: serving.fingerprintSha256,
      issuer_ca_sha256: serving.issuerCaSha256,
      not_before: iso(serving.notBeforeMs),
      not_after: iso(serving.notAfterMs),
    },
    loaded_at: iso(loadedAtMs),
    error: error === null ? null : { code: error.code, message: error.message, since: iso(error.sinceMs) },
  };
}

const iso = (ms: number): string => new Date(ms).toISOString();
