import * as v from 'valibot';
import { event } from '../event/definition.ts';
import { count, instantMs, sha256Hex } from '../fields.ts';

/** Events of stream `log`: what was done with the log itself. */
export const checkpointEvents = {
  log_checkpoint_signed: event(
    v.strictObject({
      /** The last position that the signed checkpoint vouches for; this event comes after it. */
      position: count,
      hash: sha256Hex,
      /** SHA-256 of the DER SubjectPublicKeyInfo of the signing key. */
      key_sha256: sha256Hex,
      signed_at: instantMs,
    }),
  ),
} as const;
