import { hash } from 'node:crypto';

/** A one-time secret for its host (256 bits in hex), and the digest that may be written down: of the bytes, not of their hex. */
export interface EnrollmentSecret {
  readonly hex: string;
  readonly sha256: string;
}

const SECRET_BYTES = 32;

/** A new secret; `randomBytes` is node:crypto's, or a test's. */
export function newEnrollmentSecret(randomBytes: (size: number) => Buffer): EnrollmentSecret {
  const bytes = randomBytes(SECRET_BYTES);
  return { hex: bytes.toString('hex'), sha256: hash('sha256', bytes) };
}
