import type pg from 'pg';
import * as v from 'valibot';
import { secondsOf } from './seconds.ts';
import type { SilenceThresholds } from './sweep.ts';

const environment = v.object({
  PUSHLEFT_NODE_UNHEALTHY_AFTER: secondsOf(90, 0.1, 86_400),
  PUSHLEFT_NODE_LOST_AFTER_SECONDS: secondsOf(300, 0.2, 604_800),
  PUSHLEFT_ALLOW_SHORT_THRESHOLDS: v.optional(v.picklist(['', '0', '1']), ''),
});

/** Shortest thresholds of a real fleet, s: a gateway lets an agent that is well wait for work for up to 20 s. */
const SHORTEST = { PUSHLEFT_NODE_UNHEALTHY_AFTER: 25, PUSHLEFT_NODE_LOST_AFTER_SECONDS: 30 } as const;

/** The thresholds, or one line that names the variable and what is wrong with it. */
export type ReadThresholds =
  | { readonly ok: true; readonly thresholds: SilenceThresholds }
  | { readonly ok: false; readonly message: string };

/** Reads from when on silent nodes are unhealthy and lost. */
export function readThresholds(env: Readonly<Record<string, string | undefined>>): ReadThresholds {
  const read = v.safeParse(environment, env);
  if (!read.success) {
    const [issue] = read.issues;
    return { ok: false, message: `${v.getDotPath(issue) ?? 'environment'}: ${issue.message}` };
  }
  const set = read.output;
  const { PUSHLEFT_NODE_UNHEALTHY_AFTER: unhealthy, PUSHLEFT_NODE_LOST_AFTER_SECONDS: lost } = set;
  if (set.PUSHLEFT_ALLOW_SHORT_THRESHOLDS !== '1') {
    const short = (['PUSHLEFT_NODE_UNHEALTHY_AFTER', 'PUSHLEFT_NODE_LOST_AFTER_SECONDS'] as const).find(
      (name) => set[name] < SHORTEST[name],
    );
    if (short !== undefined) return { ok: false, message: `${short}: is shorter than ${SHORTEST[short]} s` };
  }
  if (lost < unhealthy) {
    return { ok: false, message: 'PUSHLEFT_NODE_LOST_AFTER_SECONDS: is shorter than PUSHLEFT_NODE_UNHEALTHY_AFTER' };
  }
  return { ok: true, thresholds: { unhealthyAfterMs: unhealthy * 1_000, lostAfterMs: lost * 1_000 } };
}

const Beacon = v.object({ unhealthy_after_ms: v.number(), lost_after_ms: v.number() });

/** The thresholds of the scheduler that led last, which are those in force; undefined where none has said. */
export async function thresholdsInForce(pool: pg.Pool): Promise<SilenceThresholds | undefined> {
  const { rows } = await pool.query<{ details: unknown }>(
    `SELECT details FROM telemetry.programs
     WHERE kind = 'scheduler' AND details -> 'leader' = 'true' ORDER BY beacon_at DESC LIMIT 1`,
  );
  const said = v.safeParse(Beacon, rows[0]?.details);
  if (!said.success) return undefined;
  return { unhealthyAfterMs: said.output.unhealthy_after_ms, lostAfterMs: said.output.lost_after_ms };
}
