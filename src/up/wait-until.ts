import { setTimeout as delay } from 'node:timers/promises';

export interface WaitOptions {
  /** What is waited for, as it shall stand in the error: "the gateway listens". */
  what: string;
  deadlineMs?: number;
  intervalMs?: number;
}

/**
 * Asks again and again until the condition answers something truthy, and returns that. A condition that throws counts as
 * not yet true; the last reason becomes the `cause` of the error thrown at the deadline.
 */
export async function waitUntil<T>(
  condition: () => T | Promise<T>,
  { what, deadlineMs = 10_000, intervalMs = 20 }: WaitOptions,
): Promise<Exclude<Awaited<T>, Falsy>> {
  const startedAt = performance.now();
  for (;;) {
    let cause: unknown;
    try {
      const answer = await condition();
      if (isTruthy(answer)) return answer;
    } catch (error) {
      cause = error;
    }
    const waitedMs = Math.round(performance.now() - startedAt);
    if (waitedMs >= deadlineMs) throw new Error(`waited ${waitedMs} ms in vain for: ${what}`, { cause });
    await delay(intervalMs);
  }
}

type Falsy = false | 0 | 0n | '' | null | undefined;

function isTruthy<T>(value: T): value is Exclude<T, Falsy> {
  return Boolean(value);
}
