import { describeError } from '../log.ts';
import { type Ensured, type Runtime, UNDO_MS, type WorkloadSpec } from './runtime.ts';

/**
 * Ensures a workload and waits for what it is to show. When that fails, it is removed again; when the wait was aborted, only if it had not been
 * there before.
 */
export async function bringUp<T>(
  runtime: Runtime,
  spec: WorkloadSpec,
  signal: AbortSignal,
  wait: (ensured: Ensured) => Promise<T>,
): Promise<T> {
  const ensured = await runtime.ensure(spec, signal);
  try {
    return await wait(ensured);
  } catch (error) {
    if (!(ensured.found && signal.aborted)) await undo(runtime, spec, error);
    throw error;
  }
}

/** Not under the signal, which may be aborted: that is why it is undone. */
async function undo(runtime: Runtime, spec: WorkloadSpec, reason: unknown): Promise<void> {
  try {
    await runtime.remove(spec, UNDO_MS.grace, AbortSignal.timeout(UNDO_MS.deadline));
  } catch (error) {
    const message = `${spec.id} could not be removed again after: ${describeError(reason)}`;
    throw new Error(message, { cause: error });
  }
}
