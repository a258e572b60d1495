import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Credentials, renewLogins } from '../../src/up/logins.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Runs a statement with a login. */
async function query({ user, password }: Credentials, statement: string): Promise<unknown> {
  const client = new Client({ connectionString: database.url.replace(/\/\/[^@]*@/, `//${user}:${password}@`) });
  try {
    await client.connect();
    return (await client.query(statement)).rows[0];
  } finally {
    await client.end();
  }
}

test('renewed: each program may do what its group may, with the new password alone', async () => {
  const before = await renewLogins(database.url);
  const now = await renewLogins(database.url);
  await expect(query(before.gateway, 'SELECT')).rejects.toMatchObject({ code: '28P01' });
  expect(await query(now.gateway, 'SELECT session_user::text AS who')).toEqual({ who: 'pushleft_gateway_login' });
  expect(await query(now.scheduler, 'SELECT count(*)::int AS events FROM log.events')).toEqual({ events: 0 });
  await expect(query(now.operator, 'DROP SCHEMA fleet CASCADE')).rejects.toMatchObject({ code: '42501' });
});
