import type { Enrollment } from '../../../src/domain/certificate/enroll.ts';
import { digest, pem, SECOND_FINGERPRINT, SECOND_SECRET, SECOND_SERIAL, SECRET, sample } from '../../support/events.ts';

const {
  secret_sha256: _secret,
  purpose: _purpose,
  cause: _cause,
  replaces_id: _replaces,
  secret_expires_at: _ends,
  ...enrollment
} = sample.certificate_authorized.data;

/** The agent redeems the first secret with its key. */
export const enroll: Enrollment = { ...enrollment, secret_sha256: SECRET };

/** It redeems another secret, for another certificate. */
export const enrollAgain: Enrollment = {
  ...enrollment,
  certificate_id: SECOND_SERIAL,
  secret_sha256: SECOND_SECRET,
  tbs_sha256: digest('7b6'),
};

/** The gateway has signed the first certificate. */
export const signed = { ...sample.certificate_issued.data, tbs_sha256: enrollment.tbs_sha256 };

/** It has signed the second. */
export const signedAgain = {
  ...signed,
  certificate_id: SECOND_SERIAL,
  fingerprint: SECOND_FINGERPRINT,
  certificate_pem: pem('MIIBsecond'),
  tbs_sha256: enrollAgain.tbs_sha256,
};
