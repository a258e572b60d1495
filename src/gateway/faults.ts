import type { Logger } from 'pino';
import { UnavailableError } from '../transactor/command.ts';
import { type Answer, problem } from './answer.ts';

/**
 * What an exception is to whoever asked: 503 when the control plane cannot answer now, else 500, logged once and without a detail in
 * the answer. That the database is away is logged where it is noticed, once, and not for each request that meets it.
 */
export function faultAnswer(error: unknown, route: string, log: Logger): Answer {
  if (error instanceof UnavailableError) {
    if (error.reason === 'definition_mismatch') log.error({ route, reason: error.reason }, error.message);
    return problem('unavailable');
  }
  log.error({ err: error, route }, 'a request failed');
  return problem('internal');
}
