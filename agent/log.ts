import { type DestinationStream, destination, type Logger, pino } from 'pino';

/** The agent's log: JSON lines, one an event. */
export type Log = Logger;

const SECRET_FIELDS = [
  'enrollment_secret',
  'lease_token',
  'leaseToken',
  'secret',
  'token',
  'key',
  'keyPem',
  'key_pem',
  'privateKey',
  'authorization',
];

/**
 * Logs to standard error, synchronously: the last line before an exit is the one that is needed.
 * Fields that could hold a secret are redacted at the first two levels; nothing logs bodies or payloads at all.
 */
export function createLog(level = 'info', stream: DestinationStream = destination({ fd: 2, sync: true })): Log {
  const paths = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]);
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"at":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths, censor: '[redacted]' },
    },
    stream,
  );
}

/** One line on an error for a log or a person: code and message down the chain of causes, without a stack. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  const own = code === undefined || error.message.includes(code) ? error.message : `${code}: ${error.message}`;
  const inner = error instanceof AggregateError ? error.errors[0] : error.cause;
  const text = own === '' ? error.name : own;
  return inner === undefined ? text : `${text} (${describeError(inner)})`;
}
