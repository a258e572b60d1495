/** A renewal is granted while less than this part of the lifetime is left; requirement, Rotation. */
const DUE_LIFE = 1 / 3;
/** The points lie in this first part of that window; what follows is for a gateway that is away. */
const SPREAD = 0.6;

/** A certificate's window as the gateway stores it, epoch milliseconds, and its fingerprint in hex. */
export interface RenewableCertificate {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly fingerprintSha256: string;
}

/**
 * When this certificate is to be renewed, epoch milliseconds: a point of its own in the first three fifths of the window in which a renewal
 * is granted. It follows from the fingerprint, so it is the same after each restart, and nodes that enrolled together renew apart.
 */
export function renewalPointMs({ notBeforeMs, notAfterMs, fingerprintSha256 }: RenewableCertificate): number {
  const windowMs = (notAfterMs - notBeforeMs) * DUE_LIFE;
  const share = Number.parseInt(fingerprintSha256.slice(0, 8), 16) / 2 ** 32;
  return notAfterMs - windowMs * (1 - SPREAD * share);
}
