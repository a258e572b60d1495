import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { migrate } from '../../migrations/index.ts';
import { removePostgres } from '../../src/up/postgres/remove-postgres.ts';
import { startPostgres } from '../../src/up/postgres/start-postgres.ts';

/** A PostgreSQL of the run's own, and migrated databases on it. */
export interface BenchPostgres extends AsyncDisposable {
  /** A fresh, migrated database; the superuser's URL of it. */
  createDatabase(name: string): Promise<string>;
}

/** Starts PostgreSQL as an operator would run it: with fsync, in a folder that disposal removes. */
export async function startBenchPostgres(): Promise<BenchPostgres> {
  const stateDir = await mkdtemp(join(await realpath(tmpdir()), 'pushleft-bench-'));
  const server = await startPostgres({ stateDir, durable: true });
  return {
    async createDatabase(name) {
      const client = new Client({ connectionString: server.superuserUrl });
      await client.connect();
      await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`);
      await client.end();
      await migrate(server.url(name));
      return server.url(name);
    },
    async [Symbol.asyncDispose]() {
      await server.stop('immediate');
      await removePostgres(stateDir);
      await rm(stateDir, { recursive: true, force: true });
    },
  };
}
