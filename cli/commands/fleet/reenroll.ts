import { randomBytes } from 'node:crypto';
import { access, constants, stat } from 'node:fs/promises';
import { Flags } from '@oclif/core';
import { armReenrollmentCommand } from '../../../src/commands/node.ts';
import type { NodeState } from '../../../src/domain/node/state.ts';
import { ok } from '../../../src/domain/result.ts';
import { isPlainText } from '../../../src/protocol/text.ts';
import { type CaBundle, caBundleLines, caBundleReader } from '../../../src/provisioning/ca-bundle.ts';
import { type EnrollmentSettings, readEnrollmentSettings } from '../../../src/provisioning/config.ts';
import { newEnrollmentSecret } from '../../../src/provisioning/enrollment-secret.ts';
import { mayReplace, reenrollPath, writeReenrollFile } from '../../../src/provisioning/reenroll-file.ts';
import { resolveNodes } from '../../../src/read/resolve-node.ts';
import { nodesArgument, poolFlag } from '../../arguments.ts';
import type { FleetChoice } from '../../connection.ts';
import { Failure, refusalFailure, usageFailure } from '../../failure.ts';
import { fileProblem } from '../../file-problem.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { type Done, outcomeJson } from '../../output/outcome.ts';
import { HOW_TO_CARRY, reenrolledLines } from '../../output/reenroll.ts';
import { provisionFailure } from '../../provision-failure.ts';

/** Everything that is the same for all nodes of one call. */
interface Means {
  readonly settings: EnrollmentSettings;
  readonly caBundle: CaBundle;
  readonly folder: string;
  readonly flags: FleetChoice & { readonly 'dry-run': boolean };
}

/** `fleet reenroll`: lets nodes back in whose certificates have expired or were lost. */
export default class FleetReenroll extends OperatorCommand {
  static override summary =
    'Let nodes enrol anew: a one-time secret for each, in a file to carry to its host over SSH.';
  static override description =
    'For nodes without a certificate in force: off for too long, restored from an old snapshot, revoked, or the control plane was down. ' +
    'Writes NODE.reenroll.json (mode 0600) with what `pushleft-agent enroll --bundle` needs; the secret is in that file alone. Its use ' +
    'revokes every older certificate of the node. A lost node stays lost; a retired one never comes back. Each call arms a new secret: ' +
    'one that was armed before ends by itself. One node that is refused does not keep the others back.';
  static override examples = [
    '<%= config.bin %> fleet reenroll app-fsn1-7k2m',
    '<%= config.bin %> fleet reenroll app-fsn1-7k2m build-nbg1-q4x9 --output /root/bundles --ttl 3600',
    { description: 'Every enrolled node of a pool:', command: '<%= config.bin %> fleet reenroll --pool application' },
  ];
  static override args = { node: nodesArgument };
  static override flags = {
    pool: poolFlag,
    output: Flags.string({ char: 'o', summary: 'The folder for the files.', helpValue: 'DIR', default: '.' }),
    ttl: Flags.integer({
      summary: 'How long the secrets last [default: PUSHLEFT_ENROLLMENT_SECRET_TTL_SECONDS, or 900].',
      helpValue: 'SECONDS',
      min: 1,
      max: 86_400,
    }),
    'dry-run': dryRunFlag,
  };

  async run() {
    const { args, flags } = await this.parse(FleetReenroll);
    const { pool, output, ttl } = flags;
    if ((args.node === undefined) === (pool === undefined)) throw usageFailure('name nodes, or a --pool', 'see --help');
    await requireFolder(output);
    const { variables } = await this.environment(flags);
    const read = readEnrollmentSettings(variables);
    if (!read.ok) throw usageFailure(read.message, 'see docs/configuration.md');
    const settings = ttl === undefined ? read.settings : { ...read.settings, secretTtlMs: ttl * 1_000 };
    const chosen = await this.view(flags, async (view) => ({
      ca: await view.ca(),
      nodes:
        pool === undefined
          ? await resolveNodes(view, args.node ?? [])
          : ok((await view.nodes({ pool })).filter(mayComeBack)),
    }));
    if (!chosen.nodes.ok) throw refusalFailure(chosen.nodes.refusal);
    const caBundle = await caBundleReader(settings.caFile, async () => chosen.ca)();
    if (!caBundle.ok) throw provisionFailure(caBundle.refusals);
    this.logLines(chosen.nodes.value.length === 0 ? ['no enrolled nodes'] : caBundleLines(caBundle.value));
    const nodes = await this.each(chosen.nodes.value, { settings, caBundle: caBundle.value, folder: output, flags });
    if (nodes.some(({ file, dry_run }) => file !== null && !dry_run)) this.log('%s', HOW_TO_CARRY);
    return { ca_sha256s: caBundle.value.caSha256s, nodes };
  }

  /** One after the other; the last refusal is the exit code. A single node's refusal ends the command. */
  private async each(nodes: readonly NodeState[], means: Means) {
    const told = [];
    for (const node of nodes) {
      const { node_id, name } = node;
      try {
        const { file, expiresAt, done } = await this.one(node, means);
        this.logLines(reenrolledLines(node, file, expiresAt, done));
        const expires_at = new Date(expiresAt).toISOString();
        told.push({ node_id, name, file, expires_at, ...outcomeJson(done), error: null });
      } catch (error) {
        // A disk that takes no file takes none of the others either.
        if (!(error instanceof Failure) || nodes.length === 1 || error.code === 'file_not_written') throw error;
        const { code, message, remedy = null, details } = error;
        process.exitCode = error.exitCode;
        this.log('%s', `${name} is not let back in: ${message}${remedy === null ? '' : `; ${remedy}`}`);
        const nothingDone = outcomeJson({ dryRun: means.flags['dry-run'], events: [], reply: {} });
        const none = { file: null, expires_at: null, ...nothingDone };
        told.push({ node_id, name, ...none, error: { code, message, remedy, details } });
      }
    }
    return told;
  }

  /** Arms a secret; then, when that is committed, writes the file. A crash in between leaves a secret that nobody knows and that ends. */
  private async one(
    node: NodeState,
    { settings, caBundle, folder, flags }: Means,
  ): Promise<{ file: string; expiresAt: number; done: Done }> {
    const { node_id, name } = node;
    const file = reenrollPath(folder, node);
    if (!(await mayReplace(file, node_id))) {
      throw usageFailure(`${file} is there and is no bundle of ${name}`, 'move it away, or choose another --output');
    }
    const secret = newEnrollmentSecret(randomBytes);
    const arm = {
      node_id,
      secret_sha256: secret.sha256,
      ttl_ms: settings.secretTtlMs,
      ca_sha256s: caBundle.caSha256s,
    };
    const done = await this.decide(armReenrollmentCommand, arm, flags);
    const expiresAt = Number(done.reply['expires_at']);
    if (done.dryRun) return { file, expiresAt, done };
    try {
      await writeReenrollFile(file, { nodeId: node_id, secret, caBundle, settings, expiresAt });
    } catch (error) {
      const problem = fileProblem(error);
      if (problem === undefined) throw error;
      throw new Failure(
        2,
        'file_not_written',
        `a secret is armed for ${name}, but ${file} cannot be written (${problem})`,
        {
          remedy:
            'repeat the command with a folder that can be written: nobody knows this secret, and it ends by itself',
          details: { node_id, expires_at: new Date(expiresAt).toISOString() },
          cause: error,
        },
      );
    }
    return { file, expiresAt, done };
  }
}

/** Everybody of a pool but those who have nothing to come back to. */
function mayComeBack({ status }: NodeState): boolean {
  return status !== 'provisioning' && status !== 'retired';
}

/** Throws before anything is armed when no file could be written. */
async function requireFolder(path: string): Promise<void> {
  if (!isPlainText(path)) throw usageFailure('--output is not one line of text');
  try {
    if (!(await stat(path)).isDirectory()) throw usageFailure(`--output ${path} is not a folder`);
    await access(path, constants.W_OK);
  } catch (error) {
    const problem = fileProblem(error);
    throw problem === undefined ? error : usageFailure(`the folder ${path} cannot be used (${problem})`);
  }
}
