import { Kysely, PostgresDialect } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { createPool, READER_LIMITS } from '../src/database/connect.ts';
import { appendGrants, grantStatements, missingGrantsQuery } from '../src/database/grants.ts';
import { DEFINITION_DIGEST } from '../src/projector/digest.ts';
import { replaceProjections } from '../src/projector/rebuild.ts';
import { dropReplaced } from '../src/projector/replaced.ts';
import { type LockedSession, underDecisionLock } from '../src/projector/under-lock.ts';
import { up as log } from './001-log.ts';
import { up as telemetry } from './002-telemetry.ts';
import { up as roles } from './003-roles.ts';
import { up as nodeHosts } from './004-node-hosts.ts';
import { up as silence } from './005-silence.ts';
import { up as sources } from './006-sources.ts';

const migrations: Record<string, Migration> = {
  '001-log': { up: log },
  '002-telemetry': { up: telemetry },
  '003-roles': { up: roles },
  '004-node-hosts': { up: nodeHosts },
  '005-silence': { up: silence },
  '006-sources': { up: sources },
};

/** What `db migrate` did: the steps it took, and whether the projections had to be built anew. */
export interface MigrationReport {
  readonly applied: readonly string[];
  readonly rebuilt: boolean;
}

/**
 * Brings a database to what this program needs: log and telemetry by steps, projections by folding the log into tables of today's
 * definition. Safe to repeat, beside live commands and twice at once; killed at any point it can be run again. Throws with the failed step as its message.
 */
export async function migrate(databaseUrl: string): Promise<MigrationReport> {
  const limits = { ...READER_LIMITS, statementMs: 0, idleInTransactionMs: 0 };
  const pool = createPool({ url: databaseUrl, program: 'migrate', limits, max: 2 });
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    const migrator = new Migrator({
      db,
      provider: { getMigrations: () => Promise.resolve(migrations) },
      migrationTableName: 'pushleft_migration',
      migrationLockTableName: 'pushleft_migration_lock',
    });
    const { error, results = [] } = await migrator.migrateToLatest();
    const failed = results.find(({ status }) => status === 'Error');
    if (error !== undefined) throw new Error(`migration ${failed?.migrationName ?? ''} failed`, { cause: error });
    const rebuilt = await underDecisionLock(pool, (client) => bringUpToDate(pool, client));
    if (rebuilt) await dropReplaced(pool);
    return { applied: results.map(({ migrationName }) => migrationName), rebuilt };
  } finally {
    await db.destroy();
  }
}

/** Projections and grants together, so that no command meets one without the other. Writes nothing where nothing is to be done. */
async function bringUpToDate(pool: ReturnType<typeof createPool>, client: LockedSession): Promise<boolean> {
  const rebuilt = (await builtDefinition(client)) !== DEFINITION_DIGEST;
  if (rebuilt) await replaceProjections(pool, client);
  const { rows } = await client.query<{ missing: boolean }>(missingGrantsQuery());
  const statements = rows[0]?.missing === false ? appendGrants() : grantStatements();
  for (const statement of statements) await client.query(statement);
  return rebuilt;
}

/** The digest that the tables were built with; undefined when there are none. */
async function builtDefinition(client: LockedSession): Promise<string | undefined> {
  const { rows } = await client.query<{ there: boolean }>(
    `SELECT to_regclass('fleet.definition') IS NOT NULL AS there`,
  );
  if (rows[0]?.there !== true) return undefined;
  return (await client.query<{ digest: string }>('SELECT digest FROM fleet.definition')).rows[0]?.digest;
}
