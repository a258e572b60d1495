import { Client } from 'pg';
import { expect, test } from 'vitest';
import { createTestDatabase } from './database.ts';

test('two test databases: a table of one is unknown to the other', async () => {
  const [one, other] = [await createTestDatabase(), await createTestDatabase()];
  try {
    await one.pool.query('CREATE TABLE only_here (id int)');
    await expect(other.pool.query('SELECT FROM only_here')).rejects.toThrow('relation "only_here" does not exist');
  } finally {
    await one.drop();
    await other.drop();
  }
});

test('dropped test database: its URL connects to nothing', async () => {
  const database = await createTestDatabase();
  await database.drop();
  await expect(new Client({ connectionString: database.url }).connect()).rejects.toThrow('does not exist');
});
