import { Flags } from '@oclif/core';
import { revokeCertificatesCommand } from '../../../../src/commands/certificate.ts';
import { ok } from '../../../../src/domain/result.ts';
import { resolveCertificate } from '../../../../src/read/certificates.ts';
import type { CertificateReference, FleetView } from '../../../../src/read/fleet-view.ts';
import { resolveNode } from '../../../../src/read/resolve-node.ts';
import { hexDigits, optionalNodeArgument } from '../../../arguments.ts';
import { refusalFailure, usageFailure } from '../../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../../operator-command.ts';
import { shortSerial } from '../../../output/certificate.ts';
import { outcomeJson, outcomeLine } from '../../../output/outcome.ts';

/** `fleet certificates revoke`: locks an agent out, or one who has its key. */
export default class FleetCertificatesRevoke extends OperatorCommand {
  static override summary =
    'Revoke every certificate of a node, or a single one; it is refused from the next request on.';
  static override description =
    'This cannot be taken back. A node without a certificate in force gets back in with a new one: `fleet reenroll NODE`. ' +
    'Serial numbers and fingerprints are taken as `openssl x509 -serial -fingerprint -sha256` prints them; a beginning will do when it ' +
    'fits one certificate only.';
  static override examples = [
    '<%= config.bin %> fleet certificates revoke app-fsn1-7k2m --dry-run',
    '<%= config.bin %> fleet certificates revoke app-fsn1-7k2m',
    '<%= config.bin %> fleet certificates revoke --serial 01f3a2b49c',
  ];
  static override args = { node: optionalNodeArgument };
  static override flags = {
    serial: Flags.string({ summary: 'Only the certificate of this number.', helpValue: 'HEX' }),
    fingerprint: Flags.string({ summary: 'Only the one with this SHA-256.', helpValue: 'HEX' }),
    'dry-run': dryRunFlag,
  };

  async run() {
    const { args, flags } = await this.parse(FleetCertificatesRevoke);
    const { serial, fingerprint } = flags;
    if ([args.node, serial, fingerprint].filter((given) => given !== undefined).length !== 1) {
      throw usageFailure('name a node, or one certificate by --serial or --fingerprint', 'see --help');
    }
    const target = await this.view(flags, (view) => find(view, args.node ?? '', referenceOf(serial, fingerprint)));
    if (!target.ok) throw refusalFailure(target.refusal);
    const { node_id, name, certificate_id } = target.value;
    const command = certificate_id === undefined ? { node_id } : { node_id, certificate_id };
    const done = await this.decide(revokeCertificatesCommand, command, flags);
    const text =
      certificate_id === undefined
        ? outcomeLine(done, `the certificates of ${name} are revoked`, `${name} has no certificate to revoke`)
        : outcomeLine(
            done,
            `certificate ${shortSerial(certificate_id)} of ${name} is revoked`,
            `certificate ${shortSerial(certificate_id)} of ${name} was revoked before`,
          );
    this.log('%s', text);
    return { node_id, name, certificate_id: certificate_id ?? null, ...outcomeJson(done) };
  }
}

function referenceOf(serial: string | undefined, fingerprint: string | undefined): CertificateReference | undefined {
  if (serial !== undefined) return { by: 'certificate_id', beginning: hexDigits(serial) };
  return fingerprint === undefined ? undefined : { by: 'fingerprint', beginning: hexDigits(fingerprint) };
}

/** The node that is meant, and the certificate where one is. */
async function find(view: FleetView, node: string, reference: CertificateReference | undefined) {
  const certificate = reference === undefined ? undefined : await resolveCertificate(view, reference);
  if (certificate?.ok === false) return certificate;
  const resolved = await resolveNode(view, certificate?.value.node_id ?? node);
  if (!resolved.ok) return resolved;
  const { node_id, name } = resolved.value;
  return ok({ node_id, name, certificate_id: certificate?.value.certificate_id });
}
