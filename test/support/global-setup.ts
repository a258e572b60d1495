import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import * as v from 'valibot';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../migrations/index.ts';
import { removeAbandonedData, removePostgres } from '../../src/up/postgres/remove-postgres.ts';
import { startPostgres } from '../../src/up/postgres/start-postgres.ts';
import { identifyProcess, isRunning, ProcessIdentity } from '../../src/up/process-identity.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Superuser of the run's PostgreSQL, in its database `postgres`. */
    superuserUrl: string;
    /** The migrated database that every test's own is copied from; nobody stays connected to it. */
    templateDatabase: string;
  }
}

const TEMPLATE_DATABASE = 'pushleft_template';

const PREFIX = 'pushleft-test-run-';
const OWNER_FILE = 'run.json';

/** vitest's global setup: one PostgreSQL for the run, in a folder of its own, so that runs can go on side by side. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await removeRunsOfTheDead();
  const stateDir = await mkdtemp(join(await realpath(tmpdir()), PREFIX));
  await writeFile(join(stateDir, OWNER_FILE), JSON.stringify(identifyProcess(process.pid)));
  const server = await startPostgres({ stateDir, durable: false });
  const end = async () => {
    await server.stop('immediate');
    await removeRun(stateDir);
  };
  try {
    await createTemplate(server.superuserUrl, server.url(TEMPLATE_DATABASE));
  } catch (error) {
    await end();
    throw error;
  }
  project.provide('superuserUrl', server.superuserUrl);
  project.provide('templateDatabase', TEMPLATE_DATABASE);
  return end;
}

async function createTemplate(superuserUrl: string, templateUrl: string): Promise<void> {
  const client = new Client({ connectionString: superuserUrl });
  await client.connect();
  await client.query(`CREATE DATABASE ${TEMPLATE_DATABASE}`);
  await client.end();
  await migrate(templateUrl);
}

/** A run that was killed with -9 could not end its server. */
async function removeRunsOfTheDead(): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(PREFIX));
  for (const stateDir of names.map((name) => join(tmpdir(), name))) {
    const owner = await readFile(join(stateDir, OWNER_FILE), 'utf8').then(JSON.parse, () => undefined);
    if (v.is(ProcessIdentity, owner) && !isRunning(owner)) await removeRun(stateDir);
  }
  await removeAbandonedData(join(await realpath(tmpdir()), 'pushleft-test-'));
}

async function removeRun(stateDir: string): Promise<void> {
  await removePostgres(stateDir);
  await rm(stateDir, { recursive: true, force: true });
}
