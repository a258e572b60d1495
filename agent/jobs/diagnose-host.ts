import type { AgentConfig } from '../config.ts';
import { diagnose } from '../doctor.ts';
import type { JobHandler } from '../job-runner.ts';

/** The doctor's report as a job: what an operator sees of a host without logging in. */
export function diagnoseHost(config: AgentConfig): JobHandler<'diagnose_host'> {
  return (payload, signal) => diagnose(config, payload.checks, signal);
}
