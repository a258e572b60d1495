import { Args, Flags } from '@oclif/core';
import { type AuditedCa, type AuditOptions, auditCa } from '../../../../src/audit/audit-ca.ts';
import type { CaAuditReport, RotationAudit } from '../../../../src/domain/ca/audit-report.ts';
import type { Checkpoint } from '../../../../src/log/checkpoint.ts';
import { readHead, rowPages } from '../../../../src/log/postgres/reader.ts';
import type { LogFault } from '../../../../src/log/prove.ts';
import { checkpointFlags, readCheckpoints } from '../../../checkpoint-flags.ts';
import type { FleetChoice } from '../../../connection.ts';
import { EXIT } from '../../../exit-code.ts';
import { Failure, usageFailure } from '../../../failure.ts';
import { OperatorCommand } from '../../../operator-command.ts';
import { outsideSection, rotationSection } from '../../../output/ca-audit.ts';
import { outsideJson, rotationJson } from '../../../output/ca-audit-json.ts';
import { agreedCheckpoints, checkpointLine, faultLine, proofExitCode } from '../../../output/log-proof.ts';
import { progressLine } from '../../../output/progress.ts';
import { sectionMarkdown, sectionText } from '../../../output/sections.ts';
import { withExportFile } from '../../../read-export-file.ts';

/** What is shown of an audit: the chosen rotations, and what belongs to none where nobody asked for a certain one. */
interface Shown {
  readonly rotations: readonly RotationAudit[];
  readonly outside: CaAuditReport['outside'];
}

/** `fleet ca audit`: what happened in a rotation, replayed from the log alone. */
export default class FleetCaAudit extends OperatorCommand {
  static override summary =
    'Replay from the log what happened in a rotation of the CA, and name what has to be explained.';
  static override description =
    'Reads events, never the tables. Who acted is the database session: its user and address; the label beside them is what the program said of itself. With --verify the hash chain is proved on the way, with --checkpoint also against a signed point: exit 1 and the broken position when it does not hold, and then only what came before it is told.';
  static override examples = [
    '<%= config.bin %> fleet ca audit --verify',
    '<%= config.bin %> fleet ca audit 3f2a --markdown > rotation.md',
    '<%= config.bin %> fleet ca audit --all --from events.jsonl --checkpoint 412.checkpoint.json --public-key audit.pub.pem',
  ];
  static override args = {
    rotation: Args.string({
      description: "The rotation's id or its beginning; the last one by default.",
      ignoreStdin: true,
    }),
  };
  static override flags = {
    all: Flags.boolean({ summary: 'Every rotation.' }),
    markdown: Flags.boolean({ summary: 'Print Markdown.' }),
    verify: Flags.boolean({ summary: 'Prove the hash chain from the first event on.' }),
    from: Flags.string({
      summary: 'Audit an exported log instead of the database; - for standard input.',
      helpValue: 'FILE',
    }),
    ...checkpointFlags,
  };

  async run() {
    const { args, flags } = await this.parse(FleetCaAudit);
    if (flags.all && args.rotation !== undefined) throw usageFailure('--all leaves no rotation to choose');
    const checkpoints = await readCheckpoints(flags);
    const progress = progressLine(this.jsonEnabled());
    const audited = await this.replay(flags.from, flags, {
      prove: flags.verify || checkpoints.length > 0,
      checkpoints,
      onProgress: (position) => progress.update(`read up to position ${position}`),
    });
    progress.end();
    const { proof, position } = audited;
    process.exitCode = proofExitCode(proof?.fault);
    const shown = choose(audited.report, args.rotation, flags.all);
    const lines = flags.markdown ? markdownLines(shown) : textLines(shown);
    this.logLines([...warningLines(proof?.fault), ...lines, ...proofLines(audited, checkpoints)]);
    return {
      position,
      proof: proof && {
        position: proof.position,
        hash: proof.hash,
        fault: proof.fault ?? null,
        checkpoints: agreedCheckpoints(checkpoints, proof).map((agreed) => agreed.position),
      },
      rotations: shown.rotations.map(rotationJson),
      outside: outsideJson(shown.outside),
    };
  }

  private async replay(file: string | undefined, flags: FleetChoice, options: AuditOptions): Promise<AuditedCa> {
    if (file === undefined) {
      const pool = await this.pool(flags);
      const head = await readHead(pool);
      return auditCa(rowPages(pool, 0, head.position), options);
    }
    return withExportFile(file, ({ start, pages }) => {
      if (start.position === 0) return auditCa(pages, options);
      throw usageFailure(
        `${file} begins at position ${start.position + 1}; an audit needs the log from its first event`,
      );
    });
  }
}

function choose({ rotations, outside }: CaAuditReport, prefix: string | undefined, all: boolean): Shown {
  if (prefix === undefined) return { rotations: all ? rotations : rotations.slice(-1), outside };
  const found = rotations.filter(({ rotation_id }) => rotation_id.startsWith(prefix));
  if (found.length === 1) return { rotations: found, outside: { refused: [], anomalies: [] } };
  const many = found.length > 1;
  throw new Failure(
    EXIT.refused,
    many ? 'rotation_ambiguous' : 'rotation_unknown',
    many ? `${found.length} rotations begin so` : 'the log tells of no such rotation',
    { remedy: 'see `pushleft-controller fleet ca audit --all`' },
  );
}

function sectionsOf({ rotations, outside }: Shown) {
  const strange = outside.refused.length + outside.anomalies.length > 0;
  return [...rotations.map(rotationSection), ...(strange ? [outsideSection(outside)] : [])];
}

function textLines(shown: Shown): string[] {
  const sections = sectionsOf(shown).flatMap((section) => [...sectionText(section), '']);
  return shown.rotations.length > 0 ? sections : ['the log tells of no rotation of the CA', ...sections];
}

function markdownLines(shown: Shown): string[] {
  const sections = sectionsOf(shown).flatMap((section) => [...sectionMarkdown(section), '']);
  const none = shown.rotations.length > 0 ? [] : ['The log tells of no rotation of the CA.', ''];
  return ["# Audit of the fleet's CA", '', ...none, ...sections];
}

/** Comes first: whoever reads only the beginning must not believe the rest. */
function warningLines(fault: LogFault | undefined): string[] {
  if (fault === undefined) return [];
  return [
    faultLine(fault),
    'The log does not hold: what follows was told by events before that, and is not proved.',
    '',
  ];
}

function proofLines({ proof, position }: AuditedCa, checkpoints: readonly Checkpoint[]): string[] {
  if (proof === null) return [`read up to position ${position}; the chain was not proved (--verify)`];
  return [
    ...agreedCheckpoints(checkpoints, proof).map(checkpointLine),
    `${proof.position} events are as they were written; hash at position ${proof.position}: ${proof.hash}`,
  ];
}
