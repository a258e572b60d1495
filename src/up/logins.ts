import { randomBytes } from 'node:crypto';
import { Client, escapeIdentifier, escapeLiteral } from 'pg';

/** The programs that have a login of their own, each a member of the group role that holds its grants (migrations/003-roles.ts). */
export const LOGINS = ['operator', 'gateway', 'scheduler'] as const;
export type Login = (typeof LOGINS)[number];

/** A login's user name and this start's password. */
export interface Credentials {
  readonly user: string;
  readonly password: string;
}

/**
 * Gives each program a login with a new random password: nothing has to be remembered between two starts, and what an earlier start's
 * file may have given away is worthless. The database has to be migrated already: the group roles come from there.
 */
export async function renewLogins(ownerUrl: string): Promise<Record<Login, Credentials>> {
  const credentials = {
    operator: newCredentials('operator'),
    gateway: newCredentials('gateway'),
    scheduler: newCredentials('scheduler'),
  } satisfies Record<Login, Credentials>;
  const client = new Client({ connectionString: ownerUrl });
  await client.connect();
  try {
    for (const login of LOGINS) await client.query(statementsFor(login, credentials[login]));
  } finally {
    await client.end();
  }
  return credentials;
}

function newCredentials(login: Login): Credentials {
  return { user: `pushleft_${login}_login`, password: randomBytes(24).toString('base64url') };
}

/** One implicit transaction. The server's log names failed statements by their error alone (postgres/settings.ts). */
function statementsFor(login: Login, { user, password }: Credentials): string {
  const name = escapeIdentifier(user);
  return `
    DO $$ BEGIN
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = ${escapeLiteral(user)}) THEN CREATE ROLE ${name}; END IF;
    END $$;
    ALTER ROLE ${name} LOGIN PASSWORD ${escapeLiteral(password)};
    GRANT pushleft_${login} TO ${name}`;
}
