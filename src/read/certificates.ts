import type { CaState } from '../domain/ca/state.ts';
import type { CertificateState } from '../domain/certificate/state.ts';
import { no, ok, type Result } from '../domain/result.ts';
import type { CertificateReference, FleetView, ViewMoment } from './fleet-view.ts';
import { PREFIX_MIN_LENGTH, resolveNode } from './resolve-node.ts';

/**
 * What a certificate's CA is to the fleet: the one that issues now, the one that did until this rotation let the new one issue, the
 * one of a rotation that has not let it issue yet, or none of these. Unknown where the log was never told the CA.
 */
type IssuerRole = 'current' | 'previous' | 'next' | 'other' | 'unknown';

/** A certificate with the name of its node and the role of its CA. */
export interface ListedCertificate {
  readonly certificate: CertificateState;
  readonly nodeName: string;
  readonly issuer: IssuerRole;
}

/** The newest authorised first; `more` when the limit has cut others off. */
export interface CertificateList {
  readonly moment: ViewMoment;
  readonly live: boolean;
  readonly certificates: readonly ListedCertificate[];
  readonly more: boolean;
}

/** Lists certificates of one node or of all; those in force, or with `ended` also the revoked and expired. Refuses: node_unknown, node_ambiguous. */
export async function listCertificates(
  view: FleetView,
  { reference, ended, limit }: { reference?: string | undefined; ended: boolean; limit: number },
): Promise<Result<CertificateList>> {
  const node = reference === undefined ? undefined : await resolveNode(view, reference);
  if (node?.ok === false) return node;
  const found = await view.certificatesOf({
    nodeId: node?.value.node_id,
    inForceAt: ended ? undefined : view.moment.nowMs,
    limit: limit + 1,
  });
  const nodes = node === undefined ? await view.nodes({}) : [node.value];
  const names = new Map(nodes.map(({ node_id, name }) => [node_id, name]));
  const ca = await view.ca();
  return ok({
    moment: view.moment,
    live: view.telemetry !== null,
    certificates: found.slice(0, limit).map((certificate) => ({
      certificate,
      nodeName: names.get(certificate.node_id) ?? certificate.node_id,
      issuer: issuerRole(certificate.issuer_ca_sha256, ca),
    })),
    more: found.length > limit,
  });
}

/**
 * The certificate that an operator means by a serial number or fingerprint, or by the beginning of one (at least
 * {@link PREFIX_MIN_LENGTH} digits). Refuses: certificate_not_found, certificate_ambiguous.
 */
export async function resolveCertificate(
  view: Pick<FleetView, 'certificatesMatching'>,
  { by, beginning }: CertificateReference,
): Promise<Result<CertificateState>> {
  const matching = beginning.length < PREFIX_MIN_LENGTH ? [] : await view.certificatesMatching({ by, beginning });
  const exact = matching.find((certificate) => certificate[by] === beginning);
  if (exact !== undefined) return ok(exact);
  const [first, ...others] = matching;
  if (first === undefined) return no('certificate_not_found', { certificate: beginning });
  if (others.length > 0) return no('certificate_ambiguous', { certificate: beginning });
  return ok(first);
}

function issuerRole(sha256: string, ca: CaState | undefined): IssuerRole {
  if (ca === undefined) return 'unknown';
  if (sha256 === ca.issuing_ca_sha256) return 'current';
  if (sha256 === ca.current_ca_sha256) return 'previous';
  return sha256 === ca.next_ca_sha256 ? 'next' : 'other';
}
