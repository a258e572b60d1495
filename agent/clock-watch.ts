import type { AnswerTime } from './https-json.ts';
import type { Log } from './log.ts';
import type { Time } from './time.ts';

/** From here on a clock is called wrong: half of what certificates are backdated by (60 s, requirement, Enrollment). */
const CLOCK_SKEW_MS = 30_000;
/** The Date header is cut to whole seconds. */
const DATE_HEADER_MEAN_MS = 500;

/**
 * Compares the host's clock with the gateway's in each answer it is given. A difference of more than 30 s is logged once, with how much it
 * is, again when it has changed by as much, and its end too. It only names the fault: leases are timed by a clock that cannot be set, and
 * renewals by the gateway's; what a wrong clock does break is TLS, where a certificate then seems not valid yet, or to have expired.
 */
export function clockWatch(log: Log, time: Time): (answer: AnswerTime) => void {
  let namedMs = 0;
  return ({ serverTimeMs }) => {
    if (serverTimeMs === null) return;
    const skewMs = Math.round(time.wallMs() - serverTimeMs - DATE_HEADER_MEAN_MS);
    const isOff = Math.abs(skewMs) > CLOCK_SKEW_MS;
    if (isOff && Math.abs(skewMs - namedMs) > CLOCK_SKEW_MS) {
      namedMs = skewMs;
      const [seconds, side] = [Math.round(Math.abs(skewMs) / 1_000), skewMs > 0 ? 'ahead of' : 'behind'];
      log.warn({ clock_skew_ms: skewMs }, `this host's clock is ${seconds} s ${side} the gateway's`);
    } else if (!isOff && namedMs !== 0) {
      namedMs = 0;
      log.info({ clock_skew_ms: skewMs }, "this host's clock agrees with the gateway's again");
    }
  };
}
