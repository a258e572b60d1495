import { randomBytes } from 'node:crypto';
import { Client, Pool } from 'pg';
import { inject } from 'vitest';

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
  await asSuperuser(`CREATE DATABASE ${name} TEMPLATE pushleft_template`);
  const url = inject('superuserUrl').replace('@/postgres?', `@/${name}?`);
  const pool = new Pool({ connectionString: url });
  // Tests kill servers and break connections off on purpose; what idles in the pool then is no test's concern.
  pool.on('error', () => {});
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
export async function asSuperuser(statement: string): Promise<void> {
  const client = new Client({ connectionString: inject('superuserUrl') });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
