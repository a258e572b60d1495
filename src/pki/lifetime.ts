import type { ServingCertificate } from './pki-set.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
const WARN_BEFORE_MS = 30 * DAY_MS;
const ERROR_BEFORE_MS = 7 * DAY_MS;

/** How near its end a serving certificate is. */
export type LifetimeLevel = 'fresh' | 'ageing' | 'ending' | 'expired';

/**
 * Ageing in the last third of its life, or in the last 30 days if these are less; ending in its last seven days. One that is made for less
 * than three weeks is ending in its last third, not from its first day on.
 */
export function lifetimeLevel(
  { notBeforeMs, notAfterMs }: Pick<ServingCertificate, 'notBeforeMs' | 'notAfterMs'>,
  nowMs: number,
): LifetimeLevel {
  const leftMs = notAfterMs - nowMs;
  if (leftMs <= 0) return 'expired';
  const thirdMs = (notAfterMs - notBeforeMs) / 3;
  if (leftMs < Math.min(thirdMs, ERROR_BEFORE_MS)) return 'ending';
  return leftMs < Math.min(thirdMs, WARN_BEFORE_MS) ? 'ageing' : 'fresh';
}
