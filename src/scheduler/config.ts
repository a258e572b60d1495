import * as v from 'valibot';
import type { SilenceThresholds } from './sweep.ts';

const seconds = (fallback: number, least: number, most: number) =>
  v.pipe(
    v.optional(v.string(), String(fallback)),
    v.regex(/^\d{1,6}(?:\.\d{1,3})?$/, 'is not a number of seconds'),
    v.transform(Number),
    v.minValue(least, `is shorter than ${least} s`),
    v.maxValue(most, `is longer than ${most} s`),
  );

const environment = v.object({
  DATABASE_URL: v.pipe(v.string(), v.nonEmpty()),
  PUSHLEFT_SCHEDULER_INTERVAL_SECONDS: seconds(2, 0.01, 60),
  PUSHLEFT_LEASE_SECONDS: seconds(60, 3, 3_600),
  PUSHLEFT_NODE_UNHEALTHY_AFTER: seconds(90, 0.1, 86_400),
  PUSHLEFT_NODE_LOST_AFTER_SECONDS: seconds(300, 0.2, 604_800),
  PUSHLEFT_ALLOW_SHORT_THRESHOLDS: v.optional(v.picklist(['', '0', '1']), ''),
  PUSHLEFT_CHECKPOINT_KEY_FILE: v.optional(v.string(), ''),
  PUSHLEFT_CHECKPOINT_DIR: v.optional(v.string(), ''),
  PUSHLEFT_CHECKPOINT_INTERVAL_SECONDS: seconds(3_600, 1, 604_800),
});

/** How the log is signed: the key's file, the folder for checkpoints, the time between two. */
export interface CheckpointConfig {
  readonly keyFile: string;
  readonly directory: string;
  readonly intervalMs: number;
}

/** How a scheduler runs. `intervalMs` is the time between two passes, `leaseMs` the lease that replaces a lost guard. */
export interface SchedulerConfig {
  readonly databaseUrl: string;
  readonly programVersion: string;
  readonly intervalMs: number;
  readonly leaseMs: number;
  readonly silence: SilenceThresholds;
  /** Absent where no checkpoints are to be signed. */
  readonly checkpoints?: CheckpointConfig | undefined;
}

/** Shortest thresholds of a real fleet, s: a gateway lets an agent that is well wait for work for up to 20 s. */
const SHORTEST = { PUSHLEFT_NODE_UNHEALTHY_AFTER: 25, PUSHLEFT_NODE_LOST_AFTER_SECONDS: 30 } as const;

/** Reads the scheduler's environment. The error is one line that names the variable. */
export function readSchedulerConfig(
  env: Readonly<Record<string, string | undefined>>,
  programVersion: string,
): { ok: true; config: SchedulerConfig } | { ok: false; message: string } {
  const read = v.safeParse(environment, env);
  if (!read.success) {
    const [issue] = read.issues;
    return {
      ok: false,
      message: `${v.getDotPath(issue) ?? 'environment'}: ${issue.input === undefined ? 'is not set' : issue.message}`,
    };
  }
  const { PUSHLEFT_CHECKPOINT_KEY_FILE: keyFile, PUSHLEFT_CHECKPOINT_DIR: directory } = read.output;
  if (keyFile === '' && directory !== '') {
    return { ok: false, message: 'PUSHLEFT_CHECKPOINT_KEY_FILE: is not set, but PUSHLEFT_CHECKPOINT_DIR is' };
  }
  if (keyFile !== '' && directory === '') {
    return { ok: false, message: 'PUSHLEFT_CHECKPOINT_DIR: is not set, but PUSHLEFT_CHECKPOINT_KEY_FILE is' };
  }
  const silence = readThresholds(read.output);
  if (!silence.ok) return silence;
  const intervalMs = read.output.PUSHLEFT_CHECKPOINT_INTERVAL_SECONDS * 1_000;
  return {
    ok: true,
    config: {
      databaseUrl: read.output.DATABASE_URL,
      programVersion,
      intervalMs: read.output.PUSHLEFT_SCHEDULER_INTERVAL_SECONDS * 1_000,
      leaseMs: read.output.PUSHLEFT_LEASE_SECONDS * 1_000,
      silence: silence.thresholds,
      checkpoints: keyFile === '' ? undefined : { keyFile, directory, intervalMs },
    },
  };
}

function readThresholds(
  set: v.InferOutput<typeof environment>,
): { ok: true; thresholds: SilenceThresholds } | { ok: false; message: string } {
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
