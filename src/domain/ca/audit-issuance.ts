import type { RecordedEvent, RecordedOf } from '../event/recorded.ts';
import type { AnomalyKind, AuditMoment, CertificateAudit, RevocationCause } from './audit-report.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** A certificate while the log is read. */
export type Certificate = Mutable<CertificateAudit>;

/** What the log tells of certificates, and of the CAs that may have issued them. */
export class IssuanceAudit {
  readonly #certificates = new Map<string, Certificate>();
  /** The unrevoked ones of each node. */
  readonly #inForce = new Map<string, Set<Certificate>>();
  /** Nodes whose last certificate was revoked, until one is told of. */
  readonly #barred = new Set<string>();
  readonly #retiredCas = new Set<string>();
  readonly #abortedCas = new Set<string>();
  #current: string | null = null;
  #next: string | null = null;
  #issuing: string | null = null;

  /** The CA of the fleet; null as long as the log has not told. */
  get current(): string | null {
    return this.#current;
  }

  trustFirst(ca: string): void {
    this.#current = ca;
    this.#issuing = ca;
  }

  trustNext(current: string, next: string): void {
    this.trustFirst(current);
    this.#next = next;
  }

  switchIssuer(ca: string): void {
    this.#next = ca;
    this.#issuing = ca;
  }

  complete(ca: string): void {
    if (this.#current !== null && this.#current !== ca) this.#retiredCas.add(this.#current);
    this.#next = null;
    this.trustFirst(ca);
  }

  abort(ca: string, restored: string): void {
    this.#abortedCas.add(ca);
    this.#next = null;
    this.trustFirst(restored);
  }

  authorize(event: RecordedOf<'certificate_authorized'>): {
    certificate: Certificate;
    anomaly: AnomalyKind | undefined;
  } {
    const { certificate_id, node_id, issuer_ca_sha256, cause, not_after, replaces_id } = event.data;
    const certificate: Certificate = {
      certificate_id,
      node_id,
      issuer_ca_sha256,
      cause,
      not_after,
      replaces_id,
      authorized: moment(event),
      issued: null,
      first_used: null,
      revoked: null,
    };
    this.#certificates.set(certificate_id, certificate);
    this.#barred.delete(node_id);
    const own = this.#inForce.get(node_id);
    if (own === undefined) this.#inForce.set(node_id, new Set([certificate]));
    else own.add(certificate);
    return { certificate, anomaly: this.#issuerAnomaly(issuer_ca_sha256) };
  }

  issue(event: RecordedOf<'certificate_issued'>): void {
    const certificate = this.#certificates.get(event.data.certificate_id);
    if (certificate !== undefined) certificate.issued ??= moment(event);
  }

  /** The certificate that was used for the first time. */
  use(event: RecordedOf<'certificate_first_used'>): Certificate | undefined {
    const certificate = this.#certificates.get(event.data.certificate_id);
    if (certificate !== undefined) certificate.first_used ??= moment(event);
    return certificate;
  }

  revoke(ids: readonly string[], reason: RevocationCause, event: RecordedEvent): void {
    for (const id of ids) {
      const certificate = this.#certificates.get(id);
      if (certificate === undefined) continue;
      certificate.revoked ??= { ...moment(event), reason };
      const own = this.#inForce.get(certificate.node_id);
      if (own?.delete(certificate) === true && own.size === 0) this.#barred.add(certificate.node_id);
    }
  }

  /** Certificates that were not revoked and had not expired, in the order of the log. */
  inForce(at: number): readonly Certificate[] {
    return [...this.#inForce.values()]
      .flatMap((own) => [...own])
      .filter(({ not_after }) => not_after > at)
      .toSorted((a, b) => a.authorized.position - b.authorized.position);
  }

  /** Certificates that were authorised and, as far as the log tells, never issued. */
  neverIssued(): readonly Certificate[] {
    return [...this.#certificates.values()].filter(({ issued }) => issued === null);
  }

  /** Whether all certificates of a node were revoked. Answers once for each time: the same intruder's second request is no other news. */
  actsWithoutCertificate(nodeId: string): boolean {
    return this.#barred.delete(nodeId);
  }

  #issuerAnomaly(issuer: string): AnomalyKind | undefined {
    if (this.#issuing === null || issuer === this.#issuing) return undefined;
    if (this.#next !== null && issuer === this.#next) return 'issued_by_new_ca_before_switch';
    if (this.#next !== null && issuer === this.#current) return 'issued_by_old_ca_after_switch';
    if (this.#retiredCas.has(issuer)) return 'issued_by_old_ca_after_completion';
    return this.#abortedCas.has(issuer) ? 'issued_by_aborted_ca' : 'issued_by_neither_ca';
  }
}

function moment({ position, at }: RecordedEvent): AuditMoment {
  return { position, at };
}
