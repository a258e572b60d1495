import type {
  Anomaly,
  AnomalyKind,
  AuditAct,
  AuditMoment,
  CertificateAudit,
  NodeAudit,
  RefusedAttempt,
  RotationAudit,
} from '../../src/domain/ca/audit-report.ts';
import { duration, moment, orDash } from './format.ts';
import type { Section } from './sections.ts';
import type { TableColumn } from './table.ts';

const ANOMALIES: Record<AnomalyKind, string> = {
  attempt_refused: 'an attempt was refused',
  begun_while_running: 'a rotation began while another one was running',
  switched_without_begin: 'the issuer was switched by a rotation that never began',
  ended_without_begin: 'a rotation ended that never began',
  completed_without_switch: 'completed although the new CA had never been let issue',
  issued_by_neither_ca: 'a certificate was authorised for a CA that was none of those trusted',
  issued_by_new_ca_before_switch: 'a certificate of the new CA was authorised before that might issue',
  issued_by_old_ca_after_switch: 'a certificate of the old CA was authorised after the new one had taken over',
  issued_by_old_ca_after_completion: 'a certificate of a retired CA was authorised',
  issued_by_aborted_ca: 'a certificate of a CA whose rotation was aborted was authorised',
  authorized_never_issued: 'a certificate was authorised and never issued',
  used_after_revocation: 'a revoked certificate was used',
  identity_conflict: 'two hosts used one identity',
  node_never_moved: 'the node had not moved when the rotation was completed',
};

/** An audited rotation for people: what happened, the attempts, the nodes, their certificates, and what has to be explained. */
export function rotationSection(rotation: RotationAudit): Section {
  const { rotation_id, status, previous_ca_sha256, ca_sha256, begun, switched, ended } = rotation;
  return {
    title: `Rotation ${rotation_id}: ${status}`,
    pairs: [
      ['previous CA', orDash(previous_ca_sha256)],
      ['new CA', ca_sha256],
      ['begun', actText(begun)],
      [
        'new CA issues',
        switched === null
          ? '-'
          : `${actText(switched)}; trusted by ${switched.gateways.join(', ') || 'no live gateway'}`,
      ],
      [status === 'aborted' ? 'aborted' : 'completed', completion(ended)],
    ],
    tables: [
      { heading: 'Refused attempts', none: 'no attempt was refused', ...refusedTable(rotation.refused) },
      { heading: 'Nodes', none: 'no node was concerned', ...nodeTable(rotation.nodes) },
      { heading: 'Certificates', none: 'no certificate was concerned', ...certificateTable(rotation) },
      { heading: "Gateways' certificates", none: 'none was issued', ...gatewayTable(rotation) },
      { heading: 'Anomalies', none: 'none', ...anomalyTable(rotation.anomalies) },
    ],
  };
}

/** What belongs to no rotation. */
export function outsideSection({ refused, anomalies }: Pick<RotationAudit, 'refused' | 'anomalies'>): Section {
  return {
    title: 'Outside of rotations',
    pairs: [],
    tables: [
      { heading: 'Refused attempts', none: 'no attempt was refused', ...refusedTable(refused) },
      { heading: 'Anomalies', none: 'none', ...anomalyTable(anomalies) },
    ],
  };
}

function refusedTable(refused: readonly RefusedAttempt[]) {
  const blockers = ({ blocking_nodes, blocking_gateways }: RefusedAttempt) => {
    const nodes = blocking_nodes.map(({ name, node_id, reason }) => `${name ?? node_id} (${words(reason)})`);
    return [...nodes, ...blocking_gateways].join(', ') || '-';
  };
  return table(refused, [
    { heading: 'POSITION', value: ({ position }) => String(position), alignRight: true },
    { heading: 'TIME', value: ({ at }) => moment(at) },
    { heading: 'ACTION', value: ({ action }) => action },
    { heading: 'REASON', value: ({ reason }) => reason },
    { heading: 'BLOCKED BY', value: blockers },
    { heading: 'BY', value: ({ actor }) => actorText(actor) },
  ]);
}

function nodeTable(nodes: readonly NodeAudit[]) {
  return table(nodes, [
    { heading: 'NODE', value: nodeText },
    { heading: 'MOVED', value: ({ moved }) => momentText(moved) },
    { heading: 'IN THE OVERLAP', value: ({ overlap_ms }) => (overlap_ms === null ? '-' : duration(overlap_ms)) },
    { heading: 'ID', value: ({ node_id }) => node_id },
  ]);
}

function certificateTable({ nodes, previous_ca_sha256, ca_sha256 }: RotationAudit) {
  const caText = (issuer: string) => {
    if (issuer === ca_sha256) return 'new';
    return issuer === previous_ca_sha256 ? 'previous' : issuer.slice(0, 16);
  };
  const rows = nodes.flatMap((node) => node.certificates.map((certificate) => ({ node, certificate })));
  const column = (heading: string, value: (certificate: CertificateAudit) => string) => ({
    heading,
    value: ({ certificate }: (typeof rows)[number]) => value(certificate),
  });
  return table(rows, [
    { heading: 'NODE', value: ({ node }) => nodeText(node) },
    column('SERIAL', ({ certificate_id }) => certificate_id),
    column('CA', ({ issuer_ca_sha256 }) => caText(issuer_ca_sha256)),
    column('CAUSE', ({ cause }) => cause),
    column('AUTHORISED', ({ authorized }) => momentText(authorized)),
    column('ISSUED', ({ issued }) => momentText(issued)),
    column('FIRST USED', ({ first_used }) => momentText(first_used)),
    column('REVOKED', ({ revoked }) => (revoked === null ? '-' : `${momentText(revoked)} (${words(revoked.reason)})`)),
  ]);
}

function gatewayTable({ gateway_certificates }: RotationAudit) {
  return table(gateway_certificates, [
    { heading: 'SERIAL', value: ({ certificate_id }) => certificate_id },
    { heading: 'CA', value: ({ issuer_ca_sha256 }) => issuer_ca_sha256.slice(0, 16) },
    { heading: 'CAUSE', value: ({ cause }) => cause },
    { heading: 'ISSUED', value: momentText },
    { heading: 'BY', value: ({ actor }) => actorText(actor) },
  ]);
}

function anomalyTable(anomalies: readonly Anomaly[]) {
  return table(anomalies, [
    { heading: 'POSITION', value: ({ position }) => String(position), alignRight: true },
    { heading: 'TIME', value: ({ at }) => moment(at) },
    { heading: 'WHAT', value: ({ kind }) => ANOMALIES[kind] },
    { heading: 'NODE', value: ({ name, node_id }) => name ?? orDash(node_id) },
    { heading: 'CERTIFICATE', value: ({ certificate_id }) => orDash(certificate_id) },
  ]);
}

/** A table whose rows are cells already. */
function table<R>(rows: readonly R[], columns: readonly TableColumn<R>[]) {
  return {
    rows: rows.map((row) => columns.map(({ value }) => value(row))),
    columns: columns.map(({ heading, alignRight = false }) => ({ heading, alignRight })),
  };
}

function completion(ended: RotationAudit['ended']): string {
  if (ended === null) return '-';
  const { revoked_certificates: revoked } = ended;
  return `${actText(ended)}${revoked === 0 ? '' : `; revoked certificates of the previous CA: ${revoked}`}`;
}

function nodeText({ name, node_id }: Pick<NodeAudit, 'name' | 'node_id'>): string {
  return name ?? node_id;
}

function momentText(at: AuditMoment | null): string {
  return at === null ? '-' : `${moment(at.at)} at ${at.position}`;
}

function actText(act: AuditAct | null): string {
  return act === null ? 'not told by the log' : `${momentText(act)} by ${actorText(act.actor)}`;
}

/** The session's own user and address come first: the label is what the program said of itself. */
function actorText({ kind, id, database_user, client_address }: AuditAct['actor']): string {
  return `${database_user} from ${client_address ?? 'a local socket'} (${kind} ${id})`;
}

function words(code: string): string {
  return code.replaceAll('_', ' ');
}
