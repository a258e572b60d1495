import { FoldError } from '../projections/projection.ts';
import { isConnectionError, sqlState } from '../src/database/connect.ts';
import { describeRefusal } from '../src/domain/refusal.ts';
import type { Refusal } from '../src/domain/result.ts';
import { LogFormatError } from '../src/log/event-log.ts';
import { UnavailableError } from '../src/transactor/command.ts';
import { EXIT, type FailureCode, refusalExitCodes } from './exit-code.ts';

/** Ends a command: what the operator reads (one line each), a stable code for scripts, and the exit code. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly exitCode: FailureCode;
  readonly code: string;
  readonly remedy: string | undefined;
  readonly details: Refusal['details'];

  constructor(
    exitCode: FailureCode,
    code: string,
    message: string,
    {
      remedy,
      details = {},
      cause,
    }: { remedy?: string | undefined; details?: Refusal['details']; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.exitCode = exitCode;
    this.code = code;
    this.remedy = remedy;
    this.details = details;
  }
}

/** Used or configured wrongly; the message names the argument or variable. */
export function usageFailure(message: string, remedy?: string): Failure {
  return new Failure(EXIT.usage, 'usage', message, { remedy });
}

/** A refusal as the end of a command. */
export function refusalFailure(refusal: Refusal): Failure {
  const { message, remedy } = describeRefusal(refusal);
  return new Failure(refusalExitCodes[refusal.code], refusal.code, message, { remedy, details: refusal.details });
}

/** Any error as a failure that names the fix where one is known; `undefined` for a fault of ours, which keeps its stack. */
export function asFailure(error: unknown): Failure | undefined {
  if (error instanceof Failure) return error;
  if (error instanceof UnavailableError) return fromUnavailable(error);
  if (isOclifError(error)) return fromOclif(error);
  if (error instanceof LogFormatError || error instanceof FoldError) return fromUnreadableLog(error);
  if (!(error instanceof Error)) return undefined;
  if (sqlState(error) !== undefined || isConnectionError(error)) return fromDatabase(error);
  return undefined;
}

function fromUnavailable(error: UnavailableError): Failure {
  if (error.reason === 'definition_mismatch') return definitionMismatch(error);
  const cause = error.cause instanceof Error ? `: ${oneLine(error.cause.message)}` : '';
  return new Failure(EXIT.unavailable, error.reason, `${oneLine(error.message)}${cause}`, {
    remedy:
      error.reason === 'outcome_unknown'
        ? 'look whether it took effect (`pushleft-controller fleet events`) before you repeat it'
        : 'see `pushleft-controller fleet doctor`',
    cause: error,
  });
}

function definitionMismatch(cause: unknown): Failure {
  return new Failure(EXIT.usage, 'definition_mismatch', 'the tables were built by another version of this program', {
    remedy: 'run `pushleft-controller db migrate` with the newer one',
    cause,
  });
}

function fromUnreadableLog(error: LogFormatError | FoldError): Failure {
  if (error instanceof LogFormatError && error.kind === 'newer_program') {
    return new Failure(EXIT.usage, 'newer_program', `a newer program wrote to the log: ${oneLine(error.message)}`, {
      remedy: 'use the newer program',
      cause: error,
    });
  }
  return new Failure(EXIT.unavailable, 'log_damaged', `the log cannot be read: ${oneLine(error.message)}`, {
    remedy: 'run `pushleft-controller log verify`',
    cause: error,
  });
}

/** The SQLSTATE classes that an operator can do something about. */
function fromDatabase(error: Error): Failure {
  const state = sqlState(error) ?? '';
  const said = oneLine(error.message);
  if (state.startsWith('28') || state === '3D000') {
    return new Failure(EXIT.usage, 'database_login', `the database refuses the login: ${said}`, {
      remedy: 'check DATABASE_URL',
      cause: error,
    });
  }
  if (state === '3F000' || state === '42P01' || state === '42703') {
    return new Failure(EXIT.usage, 'not_migrated', `the database lacks tables of this program: ${said}`, {
      remedy: 'run `pushleft-controller db migrate`',
      cause: error,
    });
  }
  if (state === '42501' || state === 'PF002') {
    return new Failure(EXIT.refused, 'permission_denied', `the database user may not do this: ${said}`, {
      remedy: 'see `pushleft-controller db roles` for the grants that an operator needs',
      cause: error,
    });
  }
  return new Failure(EXIT.unavailable, 'database', `the database failed: ${said}`, {
    remedy: isConnectionError(error) ? 'start a fleet with `npm start`, or check DATABASE_URL' : undefined,
    cause: error,
  });
}

interface OclifError extends Error {
  readonly oclif: { readonly exit?: number };
}

function isOclifError(error: unknown): error is OclifError {
  return error instanceof Error && 'oclif' in error;
}

/** oclif explains a wrong argument over several lines and lists; one line says it. */
function fromOclif(error: OclifError): Failure {
  const message = oneLine(
    error.message.replace(/^The following errors? occurred:\s*|\n?See more help with --help$/g, ''),
  );
  return usageFailure(message.charAt(0).toLowerCase() + message.slice(1), 'see --help');
}

/** Without line breaks and control characters, which would forge lines on a terminal. */
function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim();
}
