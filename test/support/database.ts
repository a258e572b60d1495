import { randomBytes } from 'node:crypto';
import { Client, type Pool } from 'pg';
import { inject } from 'vitest';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';

/** A migrated database of its own, on the run's PostgreSQL. */
export interface TestDatabase {
  /** The superuser's URL of this database. */
  url: string;
  pool: Pool;
  /** Ends the pool, breaks other connections off and drops the database. */
  drop(): Promise<void>;
}

/** Copies the migrated template. Call `drop` in afterAll or afterEach. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await asSuperuser(`CREATE DATABASE ${name} TEMPLATE ${inject('templateDatabase')}`);
  const url = inject('superuserUrl').replace('@/postgres?', `@/${name}?`);
  const pool = createPool({ url, program: 'test-reader', limits: READER_LIMITS, max: 10 });
  return {
    url,
    pool,
    async drop() {
      await pool.end();
      await asSuperuser(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

/** Runs one statement in the database `postgres`. */
async function asSuperuser(statement: string): Promise<void> {
  const client = new Client({ connectionString: inject('superuserUrl') });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
