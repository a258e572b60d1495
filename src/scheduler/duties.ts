import type { Logger } from 'pino';
import { isConnectionError } from '../database/connect.ts';
import type { Led, PassReport } from './pass.ts';

/** One of the things that a leader does in each pass. What it could not do is tried again in the next. */
export interface Duty {
  readonly name: string;
  readonly run: (led: Led) => Promise<readonly PassReport[]>;
}

/**
 * Does each duty once. One that fails is logged and stops no other. Ends early, with `superseded`, when a command was refused because
 * another replica leads by now. Throws when the connection to the database is lost: none of the others would fare better.
 */
export async function perform(duties: readonly Duty[], led: Led, log: Logger): Promise<'done' | 'superseded'> {
  for (const { name, run } of duties) {
    try {
      const reports = await run(led);
      for (const report of reports) tell(log, name, report);
      if (reports.some(isSuperseded)) return 'superseded';
    } catch (error) {
      if (isConnectionError(error)) throw error;
      log.error({ err: error, duty: name }, 'a duty failed');
    }
  }
  return 'done';
}

function isSuperseded({ refused }: PassReport): boolean {
  return refused.some(({ refusal }) => refusal.code === 'term_superseded');
}

function tell(log: Logger, duty: string, { done, refused, failed }: PassReport): void {
  if (done > 0) log.info({ duty, done, refused: refused.length }, 'decided');
  for (const { command, error } of failed) log.error({ err: error, duty, command }, 'a command failed');
}
