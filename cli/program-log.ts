import { type Logger, pino } from 'pino';
import { LOG_LEVELS } from '../src/up/settings.ts';
import { usageFailure } from './failure.ts';

/**
 * The log of a long-running program: JSON lines on standard output, level by PUSHLEFT_LOG_LEVEL (info). Written synchronously, so that the
 * last line before a crash is there. Throws a usage failure for an unknown level.
 */
export function programLog(program: string, env: Readonly<Record<string, string | undefined>>): Logger {
  const level = env['PUSHLEFT_LOG_LEVEL'] ?? 'info';
  if (!LOG_LEVELS.includes(level)) throw usageFailure(`PUSHLEFT_LOG_LEVEL is none of ${LOG_LEVELS.join(', ')}`);
  return pino({ level, base: { program, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime });
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  else signal.addEventListener('abort', () => resolve(), { once: true });
  return promise;
}
