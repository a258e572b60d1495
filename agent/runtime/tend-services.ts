import { describeError, type Log } from '../log.ts';
import type { Runtime } from './runtime.ts';

/** Starts services again that have ended by themselves, and logs what came of it. Never throws: leases go on. */
export async function tendServices(runtime: Pick<Runtime, 'tend'>, log: Log, signal: AbortSignal): Promise<void> {
  try {
    const { restarted, failed } = await runtime.tend(signal);
    for (const id of restarted) log.warn({ instance: id }, 'service had ended, started again');
    for (const { id, reason } of failed) log.error({ instance: id, reason }, 'service not started again');
  } catch (error) {
    if (!signal.aborted) log.error({ reason: describeError(error) }, 'services not looked after');
  }
}
