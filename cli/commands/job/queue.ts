import { randomUUID } from 'node:crypto';
import { Args, Flags } from '@oclif/core';
import { queueJobCommand } from '../../../src/commands/job.ts';
import { DEFAULT_MAX_ATTEMPTS, newJob } from '../../../src/commands/new-job.ts';
import { POOLS } from '../../../src/domain/fields.ts';
import { JOB_KINDS, jobKinds } from '../../../src/protocol/job-kinds/registry.ts';
import { BODY_MAX_BYTES } from '../../../src/protocol/limits.ts';
import { readJob } from '../../../src/read/job-details.ts';
import { resolveNode } from '../../../src/read/resolve-node.ts';
import { UnavailableError } from '../../../src/transactor/command.ts';
import { nodeFlag } from '../../arguments.ts';
import type { FleetChoice } from '../../connection.ts';
import { EXIT } from '../../exit-code.ts';
import { Failure, refusalFailure, usageFailure } from '../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { jobDocument, jobLines } from '../../output/job-details.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';
import { readBounded } from '../../read-bounded.ts';
import { waitForJob } from '../../wait-for-job.ts';

/** `job queue`: hands work to a node or a pool. */
export default class JobQueue extends OperatorCommand {
  static override summary = 'Queue a job for a node, or for any node of a pool.';
  static override description = `Kinds:\n${jobKinds.map((kind) => `- ${kind}: ${JOB_KINDS[kind].summary}`).join('\n')}`;
  static override examples = [
    '<%= config.bin %> job queue diagnose_host --node app-fsn1-7k2m --wait',
    `echo '{"checks":["clock"]}' | <%= config.bin %> job queue diagnose_host --pool build --payload -`,
  ];
  static override args = {
    kind: Args.string({ description: 'What is to be done.', options: jobKinds, required: true, ignoreStdin: true }),
  };
  static override flags = {
    node: { ...nodeFlag, exactlyOne: ['node', 'pool'] },
    pool: Flags.option({ options: POOLS, summary: 'Any schedulable node of this pool.' })(),
    payload: Flags.string({ summary: 'A JSON file, or - for standard input [default: {}].', helpValue: 'FILE' }),
    'max-attempts': Flags.integer({
      summary: 'How often the job is tried when leases run out.',
      default: DEFAULT_MAX_ATTEMPTS,
      min: 1,
      max: 100,
    }),
    id: Flags.string({ summary: 'A UUID of your own: queueing the same job again does nothing.', helpValue: 'UUID' }),
    wait: Flags.boolean({ summary: 'Wait for the end and show the result; exit 1 when the job failed.' }),
    'wait-seconds': Flags.integer({ summary: 'Longest wait, with --wait.', default: 600, min: 1 }),
    'dry-run': dryRunFlag,
  };

  async run() {
    const { args, flags } = await this.parse(JobQueue);
    const kind = jobKinds.find((name) => name === args.kind);
    if (kind === undefined)
      throw usageFailure(`no kind of job is called ${args.kind}`, `one of: ${jobKinds.join(', ')}`);
    const payload = flags.payload === undefined ? {} : await readPayload(flags.payload);
    const nodeId = flags.node === undefined ? null : await this.nodeId(flags.node, flags);
    const job = newJob({
      jobId: jobId(flags.id),
      kind,
      nodeId,
      pool: flags.pool ?? null,
      payload,
      maxAttempts: flags['max-attempts'],
    });
    if (!job.ok) throw usageFailure(`the payload does not fit ${kind}: ${job.problem}`);
    const id = job.value.job_id;
    const done = await this.decide(queueJobCommand, job.value, flags).catch((error: unknown) => {
      throw isUnclear(error) ? queueUnclear(id, error) : error;
    });
    this.log('%s', outcomeLine(done, `job ${id} is queued`, `job ${id} was queued already`));
    const document = { job_id: id, ...outcomeJson(done) };
    return flags.wait && !done.dryRun ? { ...document, ...(await this.waited(id, flags)) } : document;
  }

  private async nodeId(reference: string, flags: FleetChoice): Promise<string> {
    const node = await this.view(flags, (view) => resolveNode(view, reference));
    if (!node.ok) throw refusalFailure(node.refusal);
    return node.value.node_id;
  }

  private async waited(id: string, flags: FleetChoice & { 'wait-seconds': number }) {
    const ended = await waitForJob(await this.pool(flags), id, flags['wait-seconds'] * 1_000);
    if (!ended) {
      throw new Failure(EXIT.unavailable, 'wait_timeout', `job ${id} has not ended within ${flags['wait-seconds']} s`, {
        remedy: `it goes on; see \`pushleft-controller job show ${id}\``,
      });
    }
    const details = await this.view({ ...flags, at: undefined }, (view) => readJob(view, id));
    if (!details.ok) throw refusalFailure(details.refusal);
    this.logLines(['', ...jobLines(details.value)]);
    if (details.value.job.status === 'failed') process.exitCode = EXIT.refused;
    return jobDocument(details.value);
  }
}

function isUnclear(error: unknown): error is UnavailableError {
  return error instanceof UnavailableError && error.reason === 'outcome_unknown';
}

/** The job may have been queued: whoever repeats the command as it was would perhaps queue a second one. */
function queueUnclear(id: string, cause: UnavailableError): Failure {
  return new Failure(EXIT.unavailable, cause.reason, `it is not known whether job ${id} was queued: ${cause.message}`, {
    remedy: `repeat the command with \`--id ${id}\`, which queues it once`,
    details: { job_id: id },
    cause,
  });
}

function jobId(chosen: string | undefined): string {
  if (chosen === undefined) return randomUUID();
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(chosen))
    throw usageFailure('--id is not a UUID in lower case');
  return chosen;
}

async function readPayload(path: string): Promise<unknown> {
  const text = await readBounded(path, BODY_MAX_BYTES, '--payload');
  try {
    return JSON.parse(text);
  } catch {
    // Not the parser's own words: they quote the payload.
    throw usageFailure(`--payload ${path} is not JSON`);
  }
}
