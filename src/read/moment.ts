import type { Until } from '../projector/fold-log.ts';

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** What PostgreSQL can hold as a position. */
const MAX_POSITION = Number.MAX_SAFE_INTEGER;

/** How a moment is written, for help texts and complaints. */
export const MOMENT_FORMS = 'a log position (412), an ISO time (2026-03-01T12:00:00Z) or a time ago (90s, 10m, 2h, 1d)';

/** A moment in the past as an operator writes it ({@link MOMENT_FORMS}); `undefined` when it is none of these. */
export function parseMoment(text: string, nowMs: number): Exclude<Until, 'head'> | undefined {
  if (/^\d{1,16}$/.test(text)) {
    const position = Number(text);
    return position <= MAX_POSITION ? { position } : undefined;
  }
  const ago = durationMs(text.replace(/\s+ago$/, ''));
  if (ago !== undefined) return { at: nowMs - ago };
  // A date alone is UTC by ISO 8601; a time without a zone would depend on who asks, so it is refused.
  if (!/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:\d{2}))?$/.test(text))
    return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : { at };
}

/** A duration such as `90s`, `10m`, `2h`, `1d` or `1h30m` in ms; `undefined` when it is none. */
export function durationMs(text: string): number | undefined {
  if (!/^(?:\d{1,9}\s*[smhd]\s*)+$/.test(text)) return undefined;
  let sum = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)\s*([smhd])/g)) sum += Number(count) * (UNIT_MS[unit ?? ''] ?? 0);
  return sum;
}
