import type { JobHandler } from '../job-runner.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** Stops and removes one instance. */
export function teardownApplication(runtime: Runtime): JobHandler<'teardown_application'> {
  return async ({ instance_id: id, generation, grace_seconds: graceSeconds }, signal) => ({
    removed: await runtime.remove({ id, generation }, graceSeconds * 1_000, signal),
  });
}
