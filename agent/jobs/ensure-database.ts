import type { JobHandler } from '../job-runner.ts';
import { bringUp } from '../runtime/bring-up.ts';
import { awaitReady } from '../runtime/readiness.ts';
import type { WorkloadSpec } from '../runtime/runtime.ts';
import type { WorkloadDependencies } from './ensure-application.ts';

/** A database is never replaced by another, so all that its labels could say is this. */
const ONLY_GENERATION = 1;

/** Runs a database with its data folder until it listens. */
export function ensureDatabase({ runtime, address, time }: WorkloadDependencies): JobHandler<'ensure_database'> {
  return async (payload, signal) => {
    const timeoutMs = payload.timeout_seconds * 1_000;
    const spec: WorkloadSpec = {
      id: payload.database_id,
      deploymentId: null,
      generation: ONLY_GENERATION,
      epoch: payload.epoch,
      run: 'service',
      image: payload.image,
      command: payload.command,
      cpuMillis: payload.cpu_millis,
      memoryMb: payload.memory_mb,
      listens: true,
      keepsData: true,
    };
    return bringUp(runtime, spec, signal, async ({ port }) => {
      if (port === null) throw new Error('a database was started without a port');
      const reached = await address();
      await awaitReady(runtime, spec, { address: reached, port, path: null, timeoutMs }, time, signal);
      return { endpoint: { address: reached, port } };
    });
  };
}
