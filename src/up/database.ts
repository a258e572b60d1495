import { Client } from 'pg';
import { migrate } from '../../migrations/index.ts';
import { type Login, renewLogins } from './logins.ts';
import type { PostgresServer } from './postgres/start-postgres.ts';

const DATABASE = 'pushleft';

/** The fleet's database: its server, and the URL that each program logs in with (secrets). */
export interface FleetDatabase {
  readonly server: PostgresServer;
  readonly urls: Readonly<Record<Login, string>>;
  /** The database's owner, for migrations and rebuilds. */
  readonly ownerUrl: string;
}

/** Creates the database unless it is there, brings it up to date, and renews the programs' logins. */
export async function prepareDatabase(server: PostgresServer): Promise<FleetDatabase> {
  await createDatabase(server.superuserUrl);
  const ownerUrl = server.url(DATABASE);
  await migrate(ownerUrl);
  const logins = await renewLogins(ownerUrl);
  const urlOf = (login: Login) => server.url(DATABASE, logins[login].user, logins[login].password);
  return {
    server,
    ownerUrl,
    urls: { operator: urlOf('operator'), gateway: urlOf('gateway'), scheduler: urlOf('scheduler') },
  };
}

async function createDatabase(superuserUrl: string): Promise<void> {
  const client = new Client({ connectionString: superuserUrl });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  } finally {
    await client.end();
  }
}
