import { type Kysely, sql } from 'kysely';

/**
 * The append-only log. Columns are taken from the stored bytes by the one function that may insert, so they cannot say anything else;
 * position and revision follow from the order. Nobody updates, deletes or truncates.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`CREATE SCHEMA log`.execute(db);
  await sql`
    CREATE TABLE log.events (
      position bigint PRIMARY KEY,
      stream text COLLATE "C" NOT NULL,
      revision bigint NOT NULL,
      type text COLLATE "C" NOT NULL,
      at bigint NOT NULL,
      hash bytea NOT NULL,
      body text NOT NULL,
      UNIQUE (stream, revision)
    )`.execute(db);
  await sql`CREATE TABLE log.append_grants (role name NOT NULL, event_type text NOT NULL, PRIMARY KEY (role, event_type))`.execute(
    db,
  );
  await sql`
    CREATE FUNCTION log.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION 'the event log is append-only' USING ERRCODE = 'PF003';
    END $$`.execute(db);
  await sql`
    CREATE TRIGGER events_are_immutable BEFORE UPDATE OR DELETE ON log.events
    FOR EACH ROW EXECUTE FUNCTION log.refuse_change()`.execute(db);
  await sql`
    CREATE TRIGGER events_are_kept BEFORE TRUNCATE ON log.events
    FOR EACH STATEMENT EXECUTE FUNCTION log.refuse_change()`.execute(db);
  await sql.raw(APPEND).execute(db);
  await sql`REVOKE ALL ON FUNCTION log.append FROM PUBLIC`.execute(db);
}

/*
 * SECURITY DEFINER: programs may append only through here. Each event's bytes must follow the chain, name the session's own database
 * user and address, and be of a type granted to a role of that user. All checks and the insert are one statement, so a batch of 256 is
 * parsed once. SQLSTATEs: PF001 the log does not end at the expected position; PF002 a refused event.
 */
const APPEND = `
  CREATE FUNCTION log.append(expected bigint, bodies text[], hashes bytea[]) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
  DECLARE
    head_position bigint := 0;
    head_hash bytea := decode(repeat('00', 32), 'hex');
    inserted bigint;
  BEGIN
    SELECT e.position, e.hash INTO head_position, head_hash FROM log.events e ORDER BY e.position DESC LIMIT 1;
    IF NOT FOUND THEN
      head_position := 0;
      head_hash := decode(repeat('00', 32), 'hex');
    END IF;
    IF head_position <> expected THEN
      RAISE EXCEPTION 'the log ends at %, not at %', head_position, expected USING ERRCODE = 'PF001';
    END IF;
    WITH incoming AS MATERIALIZED (
      SELECT ord, body, hash, lag(hash, 1, head_hash) OVER (ORDER BY ord) AS previous, body::jsonb AS event
      FROM unnest(bodies, hashes) WITH ORDINALITY AS given(body, hash, ord)
    ), wrong AS (
      SELECT 1 FROM incoming
      WHERE hash <> sha256(previous || convert_to(body, 'UTF8'))
         OR event #>> '{metadata,actor,database_user}' IS DISTINCT FROM session_user::text
         OR event #>> '{metadata,actor,client_address}' IS DISTINCT FROM host(inet_client_addr())
      UNION ALL
      SELECT 1 FROM (SELECT DISTINCT event ->> 'type' AS type FROM incoming) AS used
      WHERE NOT EXISTS (
        SELECT 1 FROM log.append_grants g
        WHERE g.event_type = used.type AND pg_has_role(session_user, g.role, 'MEMBER')
      )
    ), added AS (
      INSERT INTO log.events (position, stream, revision, type, at, hash, body)
      SELECT expected + ord,
             event ->> 'stream',
             coalesce((SELECT p.revision FROM log.events p WHERE p.stream = event ->> 'stream' ORDER BY p.revision DESC LIMIT 1), 0)
               + row_number() OVER (PARTITION BY event ->> 'stream' ORDER BY ord),
             event ->> 'type', (event ->> 'at')::bigint, hash, body
      FROM incoming WHERE NOT EXISTS (SELECT 1 FROM wrong)
      RETURNING 1
    )
    SELECT count(*) INTO inserted FROM added;
    IF inserted <> cardinality(bodies) THEN
      RAISE EXCEPTION 'user % may not append these events, or their chain or origin is wrong', session_user USING ERRCODE = 'PF002';
    END IF;
    RETURN expected + inserted;
  END $$`;
