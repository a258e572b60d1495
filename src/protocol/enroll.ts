import * as v from 'valibot';
import { EnrollmentSecret, NodeId, Timestamp } from './identifiers.ts';
import { CERTIFICATE_PEM_MAX_LENGTH, CSR_PEM_MAX_LENGTH } from './limits.ts';
import { asciiLines, pemText } from './text.ts';

/**
 * `POST /v1/enroll`. The secret is hex of 256 bits; the request's CN and SAN must be `node_id`. Whether `csr_pem` is a
 * certificate request at all is for the rules of src/pki to say, by a code of their own.
 */
export const EnrollRequest = v.strictObject({
  node_id: NodeId,
  enrollment_secret: EnrollmentSecret,
  csr_pem: asciiLines(CSR_PEM_MAX_LENGTH),
});
/** `POST /v1/enroll`. */
export type EnrollRequest = v.InferOutput<typeof EnrollRequest>;

/** 200 of enrolment: the certificate, and the bundle that the agent trusts from now on. */
export const EnrollResponse = v.object({
  certificate_pem: pemText(CERTIFICATE_PEM_MAX_LENGTH),
  ca_pem: pemText(CERTIFICATE_PEM_MAX_LENGTH),
  not_after: Timestamp,
});
/** 200 of enrolment. */
export type EnrollResponse = v.InferOutput<typeof EnrollResponse>;
