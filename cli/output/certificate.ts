import type { CertificateState } from '../../src/domain/certificate/state.ts';
import { certificateStatus } from '../../src/read/node-details.ts';
import { duration, isoTime, moment } from './format.ts';

/** One line: serial, status, and how long it still holds. */
export function certificateLine(certificate: CertificateState, nowMs: number): string {
  const status = certificateStatus(certificate, nowMs);
  switch (status) {
    case 'valid':
      return `${certificate.certificate_id}, valid for ${duration(certificate.not_after - nowMs)} (until ${moment(certificate.not_after)})`;
    case 'expired':
      return `${certificate.certificate_id}, expired since ${moment(certificate.not_after)}`;
    case 'revoked':
      return `${certificate.certificate_id}, revoked at ${moment(certificate.revoked_at)} (${certificate.revoked_reason ?? ''})`;
    case 'not_issued':
      return `${certificate.certificate_id}, authorised and not issued`;
  }
}

/** Enough of a serial number to tell it from others, and to name it by: 40 random bits. */
export function shortSerial(serial: string): string {
  return serial.slice(0, 12);
}

/** A certificate for --json: what identifies it and its times, without the hashes of secrets and bytes that were signed. */
export function certificateJson(certificate: CertificateState) {
  return {
    certificate_id: certificate.certificate_id,
    purpose: certificate.purpose,
    cause: certificate.cause,
    fingerprint: certificate.fingerprint,
    issuer_ca_sha256: certificate.issuer_ca_sha256,
    not_before: isoTime(certificate.not_before),
    not_after: isoTime(certificate.not_after),
    authorized_at: isoTime(certificate.authorized_at),
    issued_at: isoTime(certificate.issued_at),
    first_used_at: isoTime(certificate.first_used_at),
    revoked_at: isoTime(certificate.revoked_at),
    revoked_reason: certificate.revoked_reason,
    replaces_id: certificate.replaces_id,
    certificate_pem: certificate.certificate_pem,
  };
}
