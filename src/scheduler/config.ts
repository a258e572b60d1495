import * as v from 'valibot';
import { secondsOf } from './seconds.ts';
import type { SilenceThresholds } from './sweep.ts';
import { readThresholds } from './thresholds.ts';

const environment = v.object({
  DATABASE_URL: v.pipe(v.string(), v.nonEmpty()),
  PUSHLEFT_SCHEDULER_INTERVAL_SECONDS: secondsOf(2, 0.01, 60),
  PUSHLEFT_LEASE_SECONDS: secondsOf(60, 3, 3_600),
  PUSHLEFT_CHECKPOINT_KEY_FILE: v.optional(v.string(), ''),
  PUSHLEFT_CHECKPOINT_DIR: v.optional(v.string(), ''),
  PUSHLEFT_CHECKPOINT_INTERVAL_SECONDS: secondsOf(3_600, 1, 604_800),
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
  const silence = readThresholds(env);
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
