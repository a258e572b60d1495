import type { EventType } from '../event/catalogue.ts';
import type { RecordedEvent, RecordedOf } from '../event/recorded.ts';
import { type Certificate, IssuanceAudit } from './audit-issuance.ts';
import type {
  Anomaly,
  AnomalyKind,
  AuditAct,
  CaAuditReport,
  GatewayCertificateAudit,
  NodeAudit,
  RefusedAttempt,
  RotationAudit,
} from './audit-report.ts';
import type { RotationStatus } from './state.ts';

/** A rotation while the log is read. */
interface Rotation {
  readonly id: string;
  readonly previousCa: string | null;
  readonly ca: string;
  readonly begun: AuditAct | null;
  status: RotationStatus;
  switched: RotationAudit['switched'];
  ended: RotationAudit['ended'];
  readonly refused: RefusedAttempt[];
  readonly gatewayCertificates: GatewayCertificateAudit[];
  readonly anomalies: Anomaly[];
  /** By node, in the order of the log. */
  readonly certificates: Map<string, Certificate[]>;
  readonly moved: Map<string, AuditAct>;
}

type Handlers = { readonly [T in EventType]?: (event: RecordedOf<T>) => void };

/**
 * Folds the log, event by event from its first one, into an audit of the CA's rotations. It looks at nothing but events, and keeps what
 * it needs of certificates and names. What is found after a rotation has ended counts with it until the next one begins.
 */
export class CaAudit {
  readonly #names = new Map<string, string>();
  readonly #retired = new Set<string>();
  readonly #issuance = new IssuanceAudit();
  readonly #rotations = new Map<string, Rotation>();
  readonly #outside: { refused: RefusedAttempt[]; anomalies: Anomaly[] } = { refused: [], anomalies: [] };
  /** Refused attempts to begin, which belong to the rotation that began at last. */
  #early: RefusedAttempt[] = [];
  #latest: Rotation | undefined;

  readonly #handlers: Handlers = {
    node_provisioning_requested: ({ data }) => void this.#names.set(data.node_id, data.name),
    node_retired: ({ data }) => void this.#retired.add(data.node_id),
    ca_initialized: ({ data }) => this.#issuance.trustFirst(data.ca_sha256),
    ca_rotation_begun: (event) => this.#begin(event),
    ca_issuer_switched: (event) => this.#switch(event),
    ca_rotation_completed: (event) => this.#complete(event),
    ca_rotation_aborted: (event) => this.#abort(event),
    ca_rotation_refused: (event) => this.#refuse(event),
    gateway_certificate_issued: (event) => {
      const { certificate_id, fingerprint, issuer_ca_sha256, cause } = event.data;
      this.#latest?.gatewayCertificates.push({ ...act(event), certificate_id, fingerprint, issuer_ca_sha256, cause });
    },
    certificate_authorized: (event) => this.#authorize(event),
    certificate_issued: (event) => this.#issuance.issue(event),
    certificate_first_used: (event) => this.#firstUse(event),
    certificates_revoked: (event) => this.#issuance.revoke(event.data.certificate_ids, event.data.reason, event),
    certificate_conflict_seen: (event) => this.#find('identity_conflict', event, event.data),
  };

  /** The next event of the log. */
  see(event: RecordedEvent): void {
    const { actor } = event.metadata;
    if (
      actor.kind === 'agent' &&
      this.#issuance.actsWithoutCertificate(actor.id) &&
      event.type !== 'certificate_first_used'
    ) {
      this.#find('used_after_revocation', event, { node_id: actor.id });
    }
    const handler = this.#handlers[event.type] as ((event: RecordedEvent) => void) | undefined;
    handler?.(event);
  }

  /** What the events so far tell. */
  report(): CaAuditReport {
    const refused = [...this.#outside.refused, ...this.#early];
    const told = new Set([...this.#rotations.values()].flatMap((one) => concerned(one).flatMap(([, own]) => own)));
    const never = this.#issuance.neverIssued().filter((certificate) => !told.has(certificate));
    const anomalies = [
      ...this.#outside.anomalies,
      ...refused.map(refusedAnomaly),
      ...never.map((certificate) => this.#neverIssued(certificate)),
    ];
    return {
      rotations: [...this.#rotations.values()].map((rotation) => this.#reportRotation(rotation)),
      outside: { refused, anomalies: anomalies.toSorted((a, b) => a.position - b.position) },
    };
  }

  #begin(event: RecordedOf<'ca_rotation_begun'>): void {
    const { rotation_id, previous_ca_sha256, ca_sha256 } = event.data;
    const running = this.#latest !== undefined && this.#latest.ended === null;
    const rotation = this.#open(rotation_id, previous_ca_sha256, ca_sha256, act(event));
    rotation.refused.push(...this.#early);
    rotation.anomalies.push(...this.#early.map(refusedAnomaly));
    this.#early = [];
    if (running) this.#find('begun_while_running', event, {});
    this.#issuance.trustNext(previous_ca_sha256, ca_sha256);
    for (const certificate of this.#issuance.inForce(event.at)) enter(rotation, certificate);
  }

  #switch(event: RecordedOf<'ca_issuer_switched'>): void {
    const { rotation_id, ca_sha256, gateways } = event.data;
    const rotation = this.#rotationOf(rotation_id, ca_sha256, 'switched_without_begin', event);
    rotation.status = 'issuing';
    rotation.switched = { ...act(event), gateways };
    this.#issuance.switchIssuer(ca_sha256);
  }

  #complete(event: RecordedOf<'ca_rotation_completed'>): void {
    const { rotation_id, ca_sha256, revoked_certificate_ids: ids } = event.data;
    const rotation = this.#rotationOf(rotation_id, ca_sha256, 'ended_without_begin', event);
    if (rotation.switched === null && rotation.begun !== null) this.#find('completed_without_switch', event, {});
    rotation.status = 'completed';
    rotation.ended = { ...act(event), revoked_certificates: ids.length };
    this.#issuance.revoke(ids, 'rotation_completed', event);
    this.#issuance.complete(ca_sha256);
    for (const node_id of rotation.certificates.keys()) {
      if (!rotation.moved.has(node_id) && !this.#retired.has(node_id))
        this.#find('node_never_moved', event, { node_id });
    }
  }

  #abort(event: RecordedOf<'ca_rotation_aborted'>): void {
    const { rotation_id, ca_sha256, restored_ca_sha256 } = event.data;
    const rotation = this.#rotationOf(rotation_id, ca_sha256, 'ended_without_begin', event);
    rotation.status = 'aborted';
    rotation.ended = { ...act(event), revoked_certificates: 0 };
    this.#issuance.abort(ca_sha256, restored_ca_sha256);
  }

  #refuse(event: RecordedOf<'ca_rotation_refused'>): void {
    const {
      rotation_id,
      action,
      reason,
      blocking_node_ids: ids,
      blocking_reasons: reasons,
      blocking_gateways,
    } = event.data;
    const blocking_nodes = reasons.map((reason, i) => ({ ...this.#node(ids[i] ?? null), reason }));
    const attempt: RefusedAttempt = { ...act(event), action, reason, blocking_nodes, blocking_gateways };
    const rotation = rotation_id === null ? undefined : this.#rotations.get(rotation_id);
    if (rotation !== undefined) {
      rotation.refused.push(attempt);
      rotation.anomalies.push(refusedAnomaly(attempt));
    } else if (action === 'begin') this.#early.push(attempt);
    else this.#outside.refused.push(attempt);
  }

  #authorize(event: RecordedOf<'certificate_authorized'>): void {
    const { certificate, anomaly } = this.#issuance.authorize(event);
    const rotation = this.#latest;
    // After its end a rotation is told of by those nodes alone that had not moved.
    if (rotation !== undefined && (rotation.ended === null || isAwaited(rotation, certificate.node_id))) {
      enter(rotation, certificate);
    }
    if (anomaly !== undefined) this.#find(anomaly, event, event.data);
  }

  #firstUse(event: RecordedOf<'certificate_first_used'>): void {
    const certificate = this.#issuance.use(event);
    if (certificate === undefined) return;
    if (certificate.revoked !== null) this.#find('used_after_revocation', event, event.data);
    const rotation = this.#latest;
    if (rotation?.ca !== certificate.issuer_ca_sha256 || rotation.moved.has(certificate.node_id)) return;
    if (rotation.certificates.has(certificate.node_id)) rotation.moved.set(certificate.node_id, act(event));
  }

  #open(id: string, previousCa: string | null, ca: string, begun: AuditAct | null): Rotation {
    const rotation: Rotation = {
      id,
      previousCa,
      ca,
      begun,
      status: 'begun',
      switched: null,
      ended: null,
      refused: [],
      gatewayCertificates: [],
      anomalies: [],
      certificates: new Map(),
      moved: new Map(),
    };
    this.#rotations.set(id, rotation);
    this.#latest = rotation;
    return rotation;
  }

  /** The rotation of an event that should come after its beginning; one that never began is an anomaly of its own. */
  #rotationOf(id: string, ca: string, otherwise: AnomalyKind, event: RecordedEvent): Rotation {
    const known = this.#rotations.get(id);
    if (known !== undefined) return known;
    const rotation = this.#open(id, this.#issuance.current, ca, null);
    this.#find(otherwise, event, {});
    return rotation;
  }

  #find(
    kind: AnomalyKind,
    { position, at }: RecordedEvent,
    about: { readonly node_id?: string; readonly certificate_id?: string },
  ): void {
    const { node_id = null, certificate_id = null } = about;
    const anomalies = this.#latest?.anomalies ?? this.#outside.anomalies;
    anomalies.push({ position, at, kind, node_id, name: this.#nameOf(node_id), certificate_id });
  }

  #nameOf(nodeId: string | null): string | null {
    return nodeId === null ? null : (this.#names.get(nodeId) ?? null);
  }

  #node(nodeId: string | null) {
    return { node_id: nodeId ?? '', name: this.#nameOf(nodeId) };
  }

  #reportRotation(rotation: Rotation): RotationAudit {
    const entered = concerned(rotation);
    const nodes = entered.map(([nodeId, own]) => this.#reportNode(rotation, nodeId, own));
    const never = entered.flatMap(([, own]) =>
      own.filter(({ issued }) => issued === null).map((certificate) => this.#neverIssued(certificate)),
    );
    return {
      rotation_id: rotation.id,
      status: rotation.status,
      previous_ca_sha256: rotation.previousCa,
      ca_sha256: rotation.ca,
      begun: rotation.begun,
      switched: rotation.switched,
      ended: rotation.ended,
      refused: rotation.refused,
      nodes: nodes.toSorted((a, b) => compare(a.name ?? a.node_id, b.name ?? b.node_id)),
      gateway_certificates: rotation.gatewayCertificates,
      anomalies: [...rotation.anomalies, ...never].toSorted((a, b) => a.position - b.position),
    };
  }

  #neverIssued({ authorized, node_id, certificate_id }: Certificate): Anomaly {
    return { ...authorized, kind: 'authorized_never_issued', ...this.#node(node_id), certificate_id };
  }

  #reportNode(rotation: Rotation, nodeId: string, certificates: readonly Certificate[]): NodeAudit {
    const moved = rotation.moved.get(nodeId);
    const [first] = certificates;
    const entered = Math.max(rotation.begun?.at ?? 0, first?.authorized.at ?? 0);
    return {
      ...this.#node(nodeId),
      moved: moved === undefined ? null : { position: moved.position, at: moved.at },
      overlap_ms: moved === undefined ? null : moved.at - entered,
      certificates: certificates.map((certificate) => ({ ...certificate })),
    };
  }
}

function enter(rotation: Rotation, certificate: Certificate): void {
  const own = rotation.certificates.get(certificate.node_id);
  if (own === undefined) rotation.certificates.set(certificate.node_id, [certificate]);
  else own.push(certificate);
}

/** Whether the rotation is still waiting for a node, or for the use of the certificate that let it move. */
function isAwaited(rotation: Rotation, nodeId: string): boolean {
  return rotation.status === 'completed' && rotation.certificates.has(nodeId) && !rotation.moved.has(nodeId);
}

/**
 * The nodes that a rotation is told with, and their certificates. Nothing was asked of the nodes by one that was aborted: only what they
 * did meanwhile is told.
 */
function concerned({ certificates, begun, status }: Rotation): (readonly [string, readonly Certificate[]])[] {
  const from = begun?.position ?? 0;
  return [...certificates].filter(
    ([, own]) => status !== 'aborted' || own.some(({ authorized }) => authorized.position > from),
  );
}

function act({ position, at, metadata }: RecordedEvent): AuditAct {
  return { position, at, actor: metadata.actor };
}

function refusedAnomaly({ position, at }: RefusedAttempt): Anomaly {
  return { position, at, kind: 'attempt_refused', node_id: null, name: null, certificate_id: null };
}

/** By code units, the same on every machine. */
function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
