import { type Kysely, sql } from 'kysely';

/** The group roles that programs' login users are members of. Roles belong to the whole server, so they may be there already. */
export const ROLES = ['pushleft_operator', 'pushleft_gateway', 'pushleft_scheduler', 'pushleft_reader'] as const;

/** Creates the group roles. What each may do is granted after every migration, by `grantRoles`, because tables come and go. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const role of ROLES) {
    await sql
      .raw(`
        DO $$ BEGIN
          CREATE ROLE ${role} NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END $$`)
      .execute(db);
  }
}
