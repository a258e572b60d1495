import * as v from 'valibot';

/** A variable with a number of seconds: its default, and between which bounds it has to be. */
export function secondsOf(fallback: number, least: number, most: number) {
  return v.pipe(
    v.optional(v.string(), String(fallback)),
    v.regex(/^\d{1,6}(?:\.\d{1,3})?$/, 'is not a number of seconds'),
    v.transform(Number),
    v.minValue(least, `is shorter than ${least} s`),
    v.maxValue(most, `is longer than ${most} s`),
  );
}
