import { createLog, type Log } from '../../../agent/log.ts';
import type { LogLine } from './agent-process.ts';

/** A log, and the lines it was given. */
export function capturedLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  return { lines, log: createLog('info', { write: (line: string) => void lines.push(JSON.parse(line)) }) };
}
