import { Flags } from '@oclif/core';
import type { JobState, JobStatus } from '../../../src/domain/job/state.ts';
import { ok } from '../../../src/domain/result.ts';
import { resolveNode } from '../../../src/read/resolve-node.ts';
import { atFlag, limitFlag, nodeFlag } from '../../arguments.ts';
import { refusalFailure } from '../../failure.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { moment, orDash } from '../../output/format.ts';
import { jobJson } from '../../output/job.ts';
import { momentJson, pastLines } from '../../output/moment-line.ts';
import { tableLines } from '../../output/table.ts';

const STATUSES: readonly JobStatus[] = ['queued', 'leased', 'completed', 'failed'];

/** `job list`: one line a job, the newest first. */
export default class JobList extends OperatorCommand {
  static override summary = 'List jobs, the newest first.';
  static override examples = [
    '<%= config.bin %> job list',
    '<%= config.bin %> job list --node app-fsn1-7k2m --status failed --json',
    '<%= config.bin %> job list --at 10m',
  ];
  static override flags = {
    at: atFlag,
    node: nodeFlag,
    status: Flags.option({ options: STATUSES, summary: 'Only jobs of this status.' })(),
    limit: limitFlag(50, 10_000),
  };

  async run() {
    const { flags } = await this.parse(JobList);
    const listed = await this.view(flags, async (view) => {
      const node = flags.node === undefined ? undefined : await resolveNode(view, flags.node);
      if (node?.ok === false) return node;
      const { status, limit } = flags;
      const found = await view.jobs({ nodeId: node?.value.node_id, status, limit: limit + 1 });
      const names = new Map((await view.nodes({})).map(({ node_id, name }) => [node_id, name]));
      const shown = { jobs: found.slice(0, limit), more: found.length > limit };
      return ok({ ...shown, names, moment: view.moment, live: view.telemetry !== null });
    });
    if (!listed.ok) throw refusalFailure(listed.refusal);
    const { jobs, more, names, moment: shown, live } = listed.value;
    this.logLines([
      ...(jobs.length === 0 ? ['no jobs'] : table(jobs, names)),
      ...(more ? [`only the newest ${jobs.length}: --limit shows more`] : []),
      ...pastLines(shown, live),
    ]);
    return { ...momentJson(shown), jobs: jobs.map(jobJson), more };
  }
}

function table(jobs: readonly JobState[], names: ReadonlyMap<string, string>): string[] {
  const nameOf = (nodeId: string | null) => (nodeId === null ? null : (names.get(nodeId) ?? nodeId));
  return tableLines(jobs, [
    { heading: 'ID', value: ({ job_id }) => job_id },
    { heading: 'KIND', value: ({ kind }) => kind },
    { heading: 'STATUS', value: ({ status }) => status },
    { heading: 'FOR', value: ({ node_id, pool }) => nameOf(node_id) ?? `pool ${orDash(pool)}` },
    { heading: 'NODE', value: ({ leased_to }) => orDash(nameOf(leased_to)) },
    { heading: 'ATTEMPT', value: ({ attempt, max_attempts }) => `${attempt}/${max_attempts}`, alignRight: true },
    { heading: 'QUEUED', value: ({ queued_at }) => moment(queued_at) },
    { heading: 'FINISHED', value: ({ finished_at }) => moment(finished_at) },
  ]);
}
