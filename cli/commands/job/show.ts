import { readJob } from '../../../src/read/job-details.ts';
import { atFlag, jobArgument } from '../../arguments.ts';
import { refusalFailure } from '../../failure.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { jobDocument, jobLines } from '../../output/job-details.ts';

/** `job show`: one job, its payload and its result. */
export default class JobShow extends OperatorCommand {
  static override summary = 'Show one job with its payload and its result, such as the report of diagnose_host.';
  static override examples = ['<%= config.bin %> job show 0197c2f4', '<%= config.bin %> job show 0197c2f4 --json'];
  static override args = { job: jobArgument };
  static override flags = { at: atFlag };

  async run() {
    const { args, flags } = await this.parse(JobShow);
    const shown = await this.view(flags, (view) => readJob(view, args.job));
    if (!shown.ok) throw refusalFailure(shown.refusal);
    this.logLines(jobLines(shown.value));
    return jobDocument(shown.value);
  }
}
