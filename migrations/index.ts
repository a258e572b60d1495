import { Kysely, PostgresDialect, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { createPool, READER_LIMITS } from '../src/database/connect.ts';
import { grantStatements } from '../src/database/grants.ts';
import { DEFINITION_DIGEST } from '../src/projector/digest.ts';
import { rebuild } from '../src/projector/rebuild.ts';
import { up as log } from './001-log.ts';
import { up as telemetry } from './002-telemetry.ts';
import { up as roles } from './003-roles.ts';

const migrations: Record<string, Migration> = {
  '001-log': { up: log },
  '002-telemetry': { up: telemetry },
  '003-roles': { up: roles },
};

/** What `db migrate` did: the steps it took, and whether the projections had to be built anew. */
export interface MigrationReport {
  readonly applied: readonly string[];
  readonly rebuilt: boolean;
}

/**
 * Brings a database to what this program needs: log and telemetry by steps, projections by folding the log into tables of today's
 * definition. Safe to repeat and to run twice at once. Throws with the failed step as its message.
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
    const rebuilt = await buildProjections(db, pool);
    for (const statement of grantStatements()) await sql.raw(statement).execute(db);
    return { applied: results.map(({ migrationName }) => migrationName), rebuilt };
  } finally {
    await db.destroy();
  }
}

async function buildProjections(db: Kysely<unknown>, pool: ReturnType<typeof createPool>): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`SELECT to_regclass('fleet.definition') IS NOT NULL AS there`.execute(
    db,
  );
  if (rows[0]?.there === true) {
    const built = await sql<{ digest: string }>`SELECT digest FROM fleet.definition`.execute(db);
    if (built.rows[0]?.digest === DEFINITION_DIGEST) return false;
  }
  await rebuild(pool);
  return true;
}
