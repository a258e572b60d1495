import type {
  Anomaly,
  AuditAct,
  AuditMoment,
  CertificateAudit,
  RefusedAttempt,
  RotationAudit,
} from '../../src/domain/ca/audit-report.ts';
import { isoTime } from './format.ts';

/** An audited rotation for --json. Times are ISO 8601, durations ms. */
export function rotationJson(rotation: RotationAudit) {
  const { begun, switched, ended, refused, nodes, gateway_certificates, anomalies, ...facts } = rotation;
  return {
    ...facts,
    begun: begun && actJson(begun),
    switched: switched && { ...actJson(switched), gateways: switched.gateways },
    ended: ended && { ...actJson(ended), revoked_certificates: ended.revoked_certificates },
    refused: refused.map(refusedJson),
    nodes: nodes.map(({ moved, certificates, ...node }) => ({
      ...node,
      moved: moved && momentJson(moved),
      certificates: certificates.map(certificateJson),
    })),
    gateway_certificates: gateway_certificates.map((own) => ({ ...own, ...momentJson(own) })),
    anomalies: anomalies.map(anomalyJson),
  };
}

/** What belongs to no rotation, for --json. */
export function outsideJson({ refused, anomalies }: Pick<RotationAudit, 'refused' | 'anomalies'>) {
  return { refused: refused.map(refusedJson), anomalies: anomalies.map(anomalyJson) };
}

function certificateJson({ not_after, authorized, issued, first_used, revoked, ...certificate }: CertificateAudit) {
  return {
    ...certificate,
    not_after: isoTime(not_after),
    authorized: momentJson(authorized),
    issued: issued && momentJson(issued),
    first_used: first_used && momentJson(first_used),
    revoked: revoked && { ...momentJson(revoked), reason: revoked.reason },
  };
}

function refusedJson(attempt: RefusedAttempt) {
  return { ...attempt, ...momentJson(attempt) };
}

function anomalyJson(anomaly: Anomaly) {
  return { ...anomaly, ...momentJson(anomaly) };
}

function actJson(act: AuditAct) {
  return { ...momentJson(act), actor: act.actor };
}

function momentJson({ position, at }: AuditMoment) {
  return { position, at: isoTime(at) };
}
