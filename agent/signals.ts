import type { Time } from './time.ts';

/** Work that goes on although it was told to end. */
export class WorkStuck extends Error {}

/** Waits for the work, and no more than `settleMs` after it was told to end: then throws WorkStuck. */
export async function settled<T>(work: Promise<T>, end: AbortSignal, settleMs: number, time: Time): Promise<T> {
  const done = new AbortController();
  const overdue = aborted(AbortSignal.any([end, done.signal]))
    .then(() => time.pause(settleMs, done.signal))
    .then(() => {
      if (!done.signal.aborted) throw new WorkStuck(`still at work ${settleMs} ms after its end`);
      return work;
    });
  try {
    return await Promise.race([work, overdue]);
  } finally {
    done.abort();
    await overdue.catch(() => undefined);
  }
}

/** Calls `act` `ms` after `start` is aborted, unless `finished` is aborted first. */
export async function actAfter(
  start: AbortSignal,
  ms: number,
  finished: AbortSignal,
  time: Time,
  act: () => void,
): Promise<void> {
  await aborted(AbortSignal.any([start, finished]));
  if (!finished.aborted) await time.pause(ms, finished);
  if (!finished.aborted) act();
}

/** Resolves when the signal is aborted. */
function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
