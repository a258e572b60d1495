import { Flags } from '@oclif/core';
import { type CertificateList, type ListedCertificate, listCertificates } from '../../../../src/read/certificates.ts';
import { certificateStatus } from '../../../../src/read/node-details.ts';
import { atFlag, limitFlag, optionalNodeArgument } from '../../../arguments.ts';
import { refusalFailure } from '../../../failure.ts';
import { OperatorCommand } from '../../../operator-command.ts';
import { certificateJson, shortSerial } from '../../../output/certificate.ts';
import { moment, orDash } from '../../../output/format.ts';
import { momentJson, pastLines } from '../../../output/moment-line.ts';
import { tableLines } from '../../../output/table.ts';

/** `fleet certificates list`: one line a certificate, the newest first. */
export default class FleetCertificatesList extends OperatorCommand {
  static override summary = "List agents' certificates, the newest first: of one node or of all.";
  static override description =
    'Those in force; with --all the revoked and the expired too. ISSUER says what the CA is to the fleet: current (it issues now), ' +
    'previous (of the rotation that is under way), other. Serial numbers are cut; --json has them whole.';
  static override examples = [
    '<%= config.bin %> fleet certificates list',
    '<%= config.bin %> fleet certificates list app-fsn1-7k2m --all',
    '<%= config.bin %> fleet certificates list --at 2h --json',
  ];
  static override args = { node: optionalNodeArgument };
  static override flags = {
    all: Flags.boolean({ summary: 'Also those that were revoked or have expired.' }),
    at: atFlag,
    limit: limitFlag(200, 10_000),
  };

  async run() {
    const { args, flags } = await this.parse(FleetCertificatesList);
    const { all, limit } = flags;
    const listed = await this.view(flags, (view) =>
      listCertificates(view, { reference: args.node, ended: all, limit }),
    );
    if (!listed.ok) throw refusalFailure(listed.refusal);
    this.logLines(lines(listed.value, all));
    const { moment: shown, certificates, more } = listed.value;
    return { ...momentJson(shown), certificates: certificates.map((each) => json(each, shown.nowMs)), more };
  }
}

function lines({ moment: shown, live, certificates, more }: CertificateList, all: boolean): string[] {
  const past = pastLines(shown, live);
  if (certificates.length === 0) {
    return [all ? 'no certificates' : 'no certificates in force; --all shows those that ended', ...past];
  }
  const table = tableLines<ListedCertificate>(certificates, [
    { heading: 'SERIAL', value: ({ certificate }) => shortSerial(certificate.certificate_id) },
    { heading: 'NODE', value: ({ nodeName }) => nodeName },
    { heading: 'CAUSE', value: ({ certificate }) => certificate.cause },
    { heading: 'ISSUER', value: ({ issuer }) => issuer },
    {
      heading: 'STATUS',
      value: ({ certificate }) => certificateStatus(certificate, shown.nowMs).replaceAll('_', ' '),
    },
    { heading: 'ISSUED', value: ({ certificate }) => moment(certificate.issued_at) },
    { heading: 'FIRST USED', value: ({ certificate }) => moment(certificate.first_used_at) },
    { heading: 'ENDS', value: ({ certificate }) => moment(certificate.not_after) },
    ...(all
      ? [
          { heading: 'REVOKED', value: ({ certificate }: ListedCertificate) => moment(certificate.revoked_at) },
          { heading: 'REASON', value: ({ certificate }: ListedCertificate) => orDash(certificate.revoked_reason) },
        ]
      : []),
    {
      heading: 'REPLACES',
      value: ({ certificate: { replaces_id } }) => orDash(replaces_id === null ? null : shortSerial(replaces_id)),
    },
  ]);
  return [...table, ...(more ? [`only the newest ${certificates.length}: --limit shows more`] : []), ...past];
}

function json({ certificate, nodeName, issuer }: ListedCertificate, nowMs: number) {
  return {
    node_id: certificate.node_id,
    name: nodeName,
    ...certificateJson(certificate),
    issuer,
    status: certificateStatus(certificate, nowMs),
  };
}
