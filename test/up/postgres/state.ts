import { Client } from 'pg';
import { removePostgres } from '../../../src/up/postgres/remove-postgres.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

export type TemporaryState = { stateDir: string } & AsyncDisposable;

/** A state directory whose PostgreSQL, should it run, is ended and removed with it. */
export async function temporaryState(): Promise<TemporaryState> {
  const folder = await temporaryDirectory();
  return {
    stateDir: folder.path,
    async [Symbol.asyncDispose]() {
      await removePostgres(folder.path);
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** The first column of the first row. */
export async function queryValue(url: string, statement: string): Promise<unknown> {
  const client = new Client({ connectionString: url });
  // A server that the test kills takes the connection along.
  client.on('error', () => {});
  await client.connect();
  try {
    const { rows } = await client.query<unknown[]>({ text: statement, rowMode: 'array' });
    return rows[0]?.[0];
  } finally {
    await client.end();
  }
}
