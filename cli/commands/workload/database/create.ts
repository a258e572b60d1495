import { randomUUID } from 'node:crypto';
import { Args, Flags } from '@oclif/core';
import * as v from 'valibot';
import { createDatabaseCommand } from '../../../../src/commands/database.ts';
import { ensureDatabaseJob } from '../../../../src/commands/workload-jobs.ts';
import { commandLine, hostLabel, imageReference } from '../../../../src/domain/fields.ts';
import { EPOCH } from '../../../../src/log/epoch.ts';
import { resolveNode } from '../../../../src/read/resolve-node.ts';
import { nodeFlag } from '../../../arguments.ts';
import { refusalFailure, usageFailure } from '../../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../../output/outcome.ts';

/** `workload database create`: a database on one node, for good. */
export default class WorkloadDatabaseCreate extends OperatorCommand {
  static override summary = 'Create a database on a node, where it stays: its data is on that disk.';
  static override description =
    'What is run is told word by word after --, and is no place for secrets: it can be read in the log and in every process listing of the host. The same again does nothing.';
  static override strict = false;
  static override examples = [
    '<%= config.bin %> workload database create orders --node db-fsn1-7k2m --memory-mb 2048 --disk-gb 20 --image postgres:18 -- postgres',
  ];
  static override args = { name: Args.string({ description: 'Its name.', required: true, ignoreStdin: true }) };
  static override flags = {
    node: { ...nodeFlag, required: true as const },
    'cpu-millis': Flags.integer({ summary: 'Thousandths of a CPU.', default: 500, min: 1, max: 1_024_000 }),
    'memory-mb': Flags.integer({ summary: 'Memory, MiB.', default: 512, min: 1, max: 16_777_216 }),
    'disk-gb': Flags.integer({ summary: 'Disk, GiB.', default: 10, min: 0, max: 16_777_216 }),
    image: Flags.string({ summary: 'The image; the process runtime does not use it.', default: 'postgres:18' }),
    'timeout-seconds': Flags.integer({ summary: 'How long it may take to listen.', default: 120, min: 1, max: 86_400 }),
    'dry-run': dryRunFlag,
  };

  async run() {
    const { args, flags, argv } = await this.parse(WorkloadDatabaseCreate);
    const command = argv.slice(1).map(String);
    if (!v.is(hostLabel, args.name))
      throw usageFailure('a database is named by lower-case letters, digits and hyphens');
    if (!v.is(imageReference, flags.image)) throw usageFailure('--image is not a reference to an image');
    if (!v.is(commandLine, command)) throw usageFailure('what is to be run comes after --, word by word');
    const node = await this.view(flags, (view) => resolveNode(view, flags.node ?? ''));
    if (!node.ok) throw refusalFailure(node.refusal);
    const { node_id } = node.value;
    const database = {
      database_id: randomUUID(),
      node_id,
      name: args.name,
      job_id: randomUUID(),
      cpu_millis: flags['cpu-millis'],
      memory_mb: flags['memory-mb'],
      disk_gb: flags['disk-gb'],
      image: flags.image,
      command,
      timeout_seconds: flags['timeout-seconds'],
    };
    const job = ensureDatabaseJob(database.job_id, database, EPOCH);
    const done = await this.decide(createDatabaseCommand, { database, job }, flags);
    this.log(
      '%s',
      outcomeLine(done, `${args.name} is being created on ${node.value.name}`, `${args.name} is there already`),
    );
    return {
      database_id: done.reply['database_id'] ?? database.database_id,
      name: args.name,
      node_id,
      ...outcomeJson(done),
    };
  }
}
