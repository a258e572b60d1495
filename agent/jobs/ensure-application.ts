import type { JobHandler } from '../job-runner.ts';
import { bringUp } from '../runtime/bring-up.ts';
import { awaitDone, awaitReady } from '../runtime/readiness.ts';
import type { Runtime, WorkloadSpec } from '../runtime/runtime.ts';
import type { Time } from '../time.ts';

/** What running workloads needs. */
export interface WorkloadDependencies {
  readonly runtime: Runtime;
  /** The address that workloads are reached at. */
  readonly address: () => Promise<string>;
  readonly time: Time;
}

/** Runs one instance of an application until it is ready, or done. */
export function ensureApplication({ runtime, address, time }: WorkloadDependencies): JobHandler<'ensure_application'> {
  return async (payload, signal) => {
    const timeoutMs = payload.timeout_seconds * 1_000;
    const spec: WorkloadSpec = {
      id: payload.instance_id,
      deploymentId: payload.deployment_id,
      generation: payload.generation,
      epoch: payload.epoch,
      run: payload.run,
      image: payload.image,
      command: payload.command,
      cpuMillis: payload.cpu_millis,
      memoryMb: payload.memory_mb,
      listens: payload.listens,
      keepsData: false,
    };
    return bringUp(runtime, spec, signal, async ({ port }) => {
      if (payload.run === 'once') {
        await awaitDone(runtime, spec, timeoutMs, time, signal);
        return { state: 'done' };
      }
      const reached = await address();
      const readiness = { address: reached, port, path: payload.readiness_path, timeoutMs };
      await awaitReady(runtime, spec, readiness, time, signal);
      return { state: 'ready', endpoint: port === null ? null : { address: reached, port } };
    });
  };
}
