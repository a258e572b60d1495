import * as v from 'valibot';
import { EnrollmentSecret, NodeId, Timestamp } from './identifiers.ts';
import { CERTIFICATE_PEM_MAX_LENGTH } from './limits.ts';
import { pemText } from './text.ts';

const HttpsOrigin = v.pipe(v.string(), v.maxLength(512), v.url(), v.regex(/^https:\/\/[^/?#@\s]+\/?$/));

/**
 * The JSON file (0600) that `fleet reenroll` writes, that a person carries to the host, and that `pushleft-agent enroll --bundle`
 * reads there: a one-time secret for one node, and whom to believe while it is used.
 */
export const ReenrollBundle = v.object({
  version: v.literal(1),
  node_id: NodeId,
  enrollment_secret: EnrollmentSecret,
  /** What the enrolment listener is verified with, instead of the host's own files, which may be of a former CA. */
  ca_pem: pemText(CERTIFICATE_PEM_MAX_LENGTH),
  enroll_url: HttpsOrigin,
  gateway_url: HttpsOrigin,
  /** When the secret ends, by the database's clock. */
  expires_at: Timestamp,
});
/** The file that `fleet reenroll` writes. */
export type ReenrollBundle = v.InferOutput<typeof ReenrollBundle>;
