const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** A duration for people, at most two units: `3s`, `4m 10s`, `2d 3h`. Negative ones count as none. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000)) * 1_000;
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  if (first === -1) return '0s';
  let rest = seconds;
  const parts = UNITS.slice(first, first + 2).map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest %= size;
    return { unit, count };
  });
  return parts
    .filter(({ count }) => count > 0)
    .map(({ unit, count }) => `${count}${unit}`)
    .join(' ');
}

/** How long ago, or that it never was. */
export function ago(at: number | null, nowMs: number): string {
  return at === null ? 'never' : `${duration(nowMs - at)} ago`;
}

/** A moment in UTC to the second; a dash where there is none. */
export function moment(at: number | null): string {
  return at === null ? '-' : `${new Date(at).toISOString().slice(0, 19)}Z`;
}

/** A moment as JSON carries it: ISO 8601 with milliseconds, or null. */
export function isoTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

/** Any value, a dash for none. */
export function orDash(value: string | number | boolean | null): string {
  return value === null ? '-' : String(value);
}
