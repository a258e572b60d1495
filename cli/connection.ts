import { hostname, userInfo } from 'node:os';
import type pg from 'pg';
import { createPool, READER_LIMITS } from '../src/database/connect.ts';
import { isPlainText } from '../src/protocol/text.ts';
import type { CommandActor } from '../src/transactor/command.ts';
import { type Audience, readEnvironmentFile } from '../src/up/environment-files.ts';
import { findStateDirectory } from '../src/up/state-directory.ts';
import { usageFailure } from './failure.ts';

/** Flags that choose the fleet. */
export interface FleetChoice {
  readonly 'state-dir'?: string | undefined;
  readonly 'database-url'?: string | undefined;
}

/** The environment of a command: the process's own, completed by what `up` wrote for such a program. */
export interface OperatorEnvironment {
  readonly databaseUrl: string;
  readonly stateDir: string | undefined;
  readonly variables: Readonly<Record<string, string | undefined>>;
}

const NO_FLEET = 'no fleet found: there is no .pushleft folder here or above, and DATABASE_URL is not set';

/**
 * Finds the fleet. Strongest first: --database-url, --state-dir, DATABASE_URL, PUSHLEFT_STATE_DIR, the nearest `.pushleft` upwards.
 * Throws a usage failure that names what to set.
 */
export async function findFleet(
  choice: FleetChoice,
  env: NodeJS.ProcessEnv,
  cwd: string,
  audience: Audience = 'operator',
): Promise<OperatorEnvironment> {
  const flag = choice['database-url'];
  if (flag !== undefined) return chosen(checkedUrl(flag, '--database-url'), env);
  const fromEnv = env['DATABASE_URL'] ?? '';
  if (choice['state-dir'] === undefined && fromEnv !== '') {
    return chosen(checkedUrl(fromEnv, 'DATABASE_URL'), env);
  }
  const stateDir = await find(choice, env, cwd);
  if (stateDir === undefined) throw usageFailure(NO_FLEET, 'start one with `npm start`, or set DATABASE_URL');
  const written = await readVariables(stateDir, audience);
  const databaseUrl = written?.['DATABASE_URL'];
  if (databaseUrl === undefined) {
    throw usageFailure(`no fleet has been started in ${stateDir}`, 'start one with `npm start`, or set DATABASE_URL');
  }
  return { databaseUrl, stateDir, variables: { ...written, ...env, DATABASE_URL: databaseUrl } };
}

function chosen(databaseUrl: string, env: NodeJS.ProcessEnv): OperatorEnvironment {
  return { databaseUrl, stateDir: undefined, variables: { ...env, DATABASE_URL: databaseUrl } };
}

async function find(choice: FleetChoice, env: NodeJS.ProcessEnv, cwd: string): Promise<string | undefined> {
  try {
    return await findStateDirectory({ flag: choice['state-dir'], env, cwd });
  } catch (error) {
    throw usageFailure(error instanceof Error ? error.message : String(error));
  }
}

async function readVariables(stateDir: string, audience: Audience): Promise<Record<string, string> | undefined> {
  try {
    return await readEnvironmentFile(stateDir, audience);
  } catch (error) {
    throw usageFailure(error instanceof Error ? error.message : String(error));
  }
}

function checkedUrl(text: string, name: string): string {
  // Not URL.canParse: a database behind a socket has no host in its URL (libpq's postgres://user@/database?host=/path).
  if (!/^postgres(?:ql)?:\/\/\S+$/.test(text)) {
    throw usageFailure(`${name} is not a PostgreSQL URL`, 'write it as postgres://user@host:5432/database');
  }
  return text;
}

/** A pool for reading, at most `max` connections. */
export function openPool(url: string, program: string, max = 2): pg.Pool {
  return createPool({ url, program, limits: READER_LIMITS, max });
}

/**
 * Who acts: PUSHLEFT_OPERATOR, by default user@host. A label for people; the audit trusts the database session's own user and address.
 * Throws a usage failure for text that no log line or terminal should hold.
 */
export function operatorActor(env: Readonly<Record<string, string | undefined>>): CommandActor {
  const chosen = env['PUSHLEFT_OPERATOR'] ?? '';
  const id = chosen === '' ? `${userName()}@${hostname()}` : chosen;
  if (id.length > 128 || !isPlainText(id)) {
    throw usageFailure('PUSHLEFT_OPERATOR is not one line of at most 128 characters');
  }
  return { kind: 'operator', id };
}

/** A uid without an entry in the user database has no name (containers). */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid${process.getuid?.() ?? ''}`;
  }
}
