import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { Args, Flags } from '@oclif/core';
import { deployCommand } from '../../../src/commands/deployment.ts';
import { buildJob } from '../../../src/commands/workload-jobs.ts';
import type { Deploy } from '../../../src/domain/deployment/deploy.ts';
import { SOURCE_MAX_BYTES } from '../../../src/protocol/job-kinds/build.ts';
import { resolveNodes } from '../../../src/read/resolve-node.ts';
import { type DeploymentFile, parseDeploymentFile, specSha256 } from '../../../src/workload/deployment-file.ts';
import { describeSource, storeSource } from '../../../src/workload/store-source.ts';
import type { FleetChoice } from '../../connection.ts';
import { EXIT } from '../../exit-code.ts';
import { Failure, refusalFailure, usageFailure } from '../../failure.ts';
import { fileProblem } from '../../file-problem.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';
import { statusOf } from '../../output/workload.ts';
import { readBounded } from '../../read-bounded.ts';
import { waitForDeployment } from '../../wait-for-deployment.ts';

const FILE_MAX_BYTES = 192 * 1_024;

/** `workload deploy`: has a deployment run as a file says. */
export default class WorkloadDeploy extends OperatorCommand {
  static override summary = 'Deploy what a file describes; the same file again does nothing.';
  static override description =
    `The file is JSON: name, org_id, regions, roles, and if wanted pool, hostnames, environment, build. A role has role, run
(service, release or job), count, cpu_millis, memory_mb, disk_gb, image, command, listens, readiness_path, timeout_seconds and
serves_hostnames. What a build makes its artifact from is a tar archive, named by build.source. See docs/workloads.md.`;
  static override examples = [
    '<%= config.bin %> workload deploy shop.json --wait',
    '<%= config.bin %> workload deploy - --dry-run < shop.json',
  ];
  static override args = {
    file: Args.string({ description: 'The file, or - for standard input.', required: true, ignoreStdin: true }),
  };
  static override flags = {
    wait: Flags.boolean({ summary: 'Wait until it is live; exit 1 when it is not.' }),
    'wait-seconds': Flags.integer({ summary: 'Longest wait, with --wait.', default: 300, min: 1 }),
    'dry-run': dryRunFlag,
  };

  async run() {
    const { args, flags } = await this.parse(WorkloadDeploy);
    const read = parseDeploymentFile(await readBounded(args.file, FILE_MAX_BYTES, 'the file'));
    if (!read.ok) throw usageFailure(`${args.file}: ${read.problem}`, 'see `workload deploy --help`');
    const { file } = read;
    const source = file.build === null ? undefined : await readSource(args.file, file.build.source);
    const command = commandOf(file, await this.members(file, flags), source);
    if (source !== undefined && !flags['dry-run']) await storeSource(await this.pool(flags), source);
    const done = await this.decide(deployCommand, command, flags);
    this.log('%s', outcomeLine(done, `${file.name} is being deployed`, `${file.name} is deployed already`));
    const id = String(done.reply['deployment_id'] ?? command.deployment.deployment_id);
    const document = { deployment_id: id, name: file.name, ...outcomeJson(done) };
    if (!flags.wait || done.dryRun) return document;
    return { ...document, status: await this.waited(id, flags) };
  }

  /** The ids of the nodes that a sealed environment consists of; null where it is open. */
  private async members({ environment }: DeploymentFile, flags: FleetChoice): Promise<string[] | null> {
    if (!environment.sealed) return null;
    const nodes = await this.view(flags, (view) => resolveNodes(view, environment.members ?? []));
    if (!nodes.ok) throw refusalFailure(nodes.refusal);
    return nodes.value.map(({ node_id }) => node_id);
  }

  private async waited(id: string, flags: FleetChoice & { 'wait-seconds': number }): Promise<string> {
    const { deployment, instances } = await waitForDeployment(await this.pool(flags), id, {
      until: ['live', 'failed', 'removed'],
      deadlineMs: flags['wait-seconds'] * 1_000,
      say: (line) => this.log('%s', line),
    });
    if (deployment.status === 'live') return deployment.status;
    const missing = instances.filter(({ status }) => status !== 'ready' && status !== 'done' && status !== 'lost');
    const what = missing.map(({ role, slot, status }) => `${role}.${slot} is ${status}`).join(', ');
    throw new Failure(
      EXIT.refused,
      'not_live',
      `${deployment.name} is ${statusOf(deployment)}: ${what || 'no route'}`,
      {
        remedy: `see \`pushleft-controller workload show ${deployment.name}\``,
        details: { deployment_id: id, status: deployment.status },
      },
    );
  }
}

function commandOf(file: DeploymentFile, members: string[] | null, source: Buffer | undefined): Deploy {
  const { name, org_id, pool, regions, hostnames, roles } = file;
  const deployment_id = randomUUID();
  const described = source && describeSource(source);
  const build =
    file.build === null || described === undefined
      ? null
      : {
          source_sha256: described.sha256,
          source_bytes: described.bytes,
          command: file.build.command,
          timeout_seconds: file.build.timeout_seconds,
        };
  const job = build === null ? null : buildJob(randomUUID(), deployment_id, org_id, build);
  const spec_sha256 = specSha256(file, described?.sha256 ?? null);
  const named = { deployment_id, name, org_id, pool, regions, hostnames, roles, spec_sha256 };
  return {
    deployment: { ...named, sealed_member_node_ids: members, build, build_job_id: job?.job_id ?? null },
    build: job,
  };
}

/** Named as seen from the file; from the working directory when that comes from standard input. */
async function readSource(file: string, source: string): Promise<Buffer> {
  const path = resolve(file === '-' ? '.' : dirname(file), source);
  const body = await readFile(path).catch((error: unknown) => {
    throw usageFailure(`build.source ${path} cannot be read (${fileProblem(error)})`);
  });
  if (body.length === 0) throw usageFailure(`build.source ${path} is empty`);
  if (body.length <= SOURCE_MAX_BYTES) return body;
  throw usageFailure(`build.source ${path} is longer than ${SOURCE_MAX_BYTES} bytes`);
}
