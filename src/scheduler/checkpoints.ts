import type pg from 'pg';
import { readSigningKey } from '../audit/checkpoint-key.ts';
import { recordCheckpoint } from '../audit/record-checkpoint.ts';
import { signHead } from '../audit/sign-checkpoint.ts';
import type { CommandActor } from '../transactor/command.ts';
import type { Transactor } from '../transactor/transactor.ts';
import type { CheckpointConfig } from './config.ts';

/** After a failure it is tried again this soon, however long the interval: a folder that was not mounted is there a little later. */
const RETRY_MS = 60_000;

/** Signs the log's head from time to time. */
export interface CheckpointPass {
  /** Begins to sign when it is time, without keeping the scheduler waiting: proving a long log takes a while. */
  begin(): void;
  /** Resolves when nothing is being signed. */
  ended(): Promise<void>;
}

/** What a pass works with. `now` is a clock in ms. */
interface Means {
  readonly pool: pg.Pool;
  readonly transactor: Transactor;
  readonly actor: CommandActor;
  readonly log: Record<'info' | 'error', (details: object, message: string) => void>;
  readonly now?: () => number;
}

/** Signs at once, then once an interval. A failure is logged and stops nothing; the key's file is read each time. */
export function checkpointPass(config: CheckpointConfig, { pool, transactor, actor, log, now = Date.now }: Means) {
  const { keyFile, directory, intervalMs } = config;
  let dueAt = Number.NEGATIVE_INFINITY;
  let signing: Promise<void> | undefined;

  const sign = async (): Promise<boolean> => {
    const reading = await readSigningKey(keyFile);
    if (!reading.ok) {
      log.error({ reason: reading.message }, 'no checkpoint was signed');
      return false;
    }
    const record = (signed: Parameters<typeof recordCheckpoint>[2]) => recordCheckpoint(transactor, actor, signed);
    const signed = await signHead({ db: pool, key: reading.key, directory, now: now(), record });
    if (signed.ok && signed.fresh) log.info({ position: signed.checkpoint.position }, 'a checkpoint was signed');
    // Nothing has happened in a new fleet yet.
    if (signed.ok || signed.code === 'log_empty') return true;
    log.error({ code: signed.code, reason: signed.message }, 'no checkpoint was signed');
    return false;
  };
  const attempt = async () => {
    const signed = await sign().catch((error: unknown) => {
      log.error({ err: error }, 'no checkpoint was signed');
      return false;
    });
    dueAt = now() + (signed ? intervalMs : Math.min(intervalMs, RETRY_MS));
    signing = undefined;
  };
  return {
    begin() {
      if (signing === undefined && now() >= dueAt) signing = attempt();
    },
    ended: async () => signing,
  } satisfies CheckpointPass;
}
