import { Flags } from '@oclif/core';
import { durationMs } from '../src/read/moment.ts';
import { usageFailure } from './failure.ts';

/** A flag that takes a duration such as 90s, 10m or 1h30m, in ms. */
export function durationFlag(name: string, summary: string) {
  return Flags.custom<number>({
    summary,
    helpValue: 'DURATION',
    parse(input) {
      const ms = durationMs(input);
      if (ms === undefined || ms === 0) throw usageFailure(`--${name} is not a duration such as 90s, 10m or 1h30m`);
      return Promise.resolve(ms);
    },
  })();
}
