import type { AnswerTime } from './https-json.ts';
import type { Log } from './log.ts';
import type { Time } from './time.ts';

/** From here on a clock is called wrong: half of what certificates are backdated by (60 s, requirement, Enrollment). */
const CLOCK_SKEW_MS = 30_000;
/** The Date header is cut to whole seconds. */
const DATE_HEADER_MEAN_MS = 500;

/**
 * Compares the host's clock with the gateway's in each answer it is given. A difference of more than 30 s is logged once, again when it
 * has changed by as much, and its end too. Nothing else of the agent depends on the wall clock.
 */
export function clockWatch(log: Log, time: Time): (answer: AnswerTime) => void {
  let namedMs = 0;
  return ({ serverTimeMs }) => {
    if (serverTimeMs === null) return;
    const skewMs = Math.round(time.wallMs() - serverTimeMs - DATE_HEADER_MEAN_MS);
    const isOff = Math.abs(skewMs) > CLOCK_SKEW_MS;
    if (isOff && Math.abs(skewMs - namedMs) > CLOCK_SKEW_MS) {
      namedMs = skewMs;
      log.warn({ clock_skew_ms: skewMs }, `this host's clock is ${skewMs > 0 ? 'ahead of' : 'behind'} the gateway's`);
    } else if (!isOff && namedMs !== 0) {
      namedMs = 0;
      log.info({ clock_skew_ms: skewMs }, "this host's clock agrees with the gateway's again");
    }
  };
}
