import type pg from 'pg';

/** More hosts than these are not kept of a node: the newest tell whether two of them use its identity in turn. */
export const MOST_HOSTS = 8;
/** A host that is still heard so long after another one first was is not that one before its reboot. */
const OVERLAP_MS = 5_000;
/** Hosts that were not heard for this long are forgotten. */
const FORGET_DAYS = 7;

/** A host that used a node's identity, and when it was first and last heard (ms, the database's clock). */
export interface SeenHost {
  readonly nodeId: string;
  readonly bootId: string;
  readonly address: string;
  readonly fingerprint: string;
  readonly firstAt: number;
  readonly lastAt: number;
}

const WRITE = `
  INSERT INTO telemetry.node_hosts AS known (node_id, boot_id, address, fingerprint, first_seen_at, last_seen_at)
  SELECT node_id, boot_id, address, fingerprint, to_timestamp(first_ms / 1000.0), to_timestamp(last_ms / 1000.0)
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
    AS seen (node_id, boot_id, address, fingerprint, first_ms, last_ms)
  ORDER BY node_id, boot_id
  ON CONFLICT (node_id, boot_id) DO UPDATE
  SET address = excluded.address, fingerprint = excluded.fingerprint,
      first_seen_at = least(known.first_seen_at, excluded.first_seen_at),
      last_seen_at = greatest(known.last_seen_at, excluded.last_seen_at)`;

const RANKED = `
  SELECT *, row_number() OVER (PARTITION BY node_id ORDER BY last_seen_at DESC, boot_id) AS place,
         count(*) OVER (PARTITION BY node_id)::integer AS hosts
  FROM telemetry.node_hosts WHERE node_id = ANY($1::text[])`;

const RECENT = `
  SELECT node_id, boot_id, address, fingerprint, hosts, (extract(epoch FROM first_seen_at) * 1000)::float8 AS first_ms,
         (extract(epoch FROM last_seen_at) * 1000)::float8 AS last_ms
  FROM (${RANKED}) AS ranked
  WHERE hosts > 1 AND place <= $2 AND last_seen_at > clock_timestamp() - interval '10 minutes'
  ORDER BY node_id, place`;

/** A row that another gateway writes at this moment is left to the next time: nobody waits for anybody crosswise. */
const TRIM = `
  DELETE FROM telemetry.node_hosts AS surplus USING (
    SELECT node_id, boot_id FROM telemetry.node_hosts JOIN (${RANKED}) AS ranked USING (node_id, boot_id)
    WHERE place > $2 FOR UPDATE OF node_hosts SKIP LOCKED
  ) AS old WHERE surplus.node_id = old.node_id AND surplus.boot_id = old.boot_id`;

/** Writes hosts; what is known of one is widened. */
export async function writeHosts(pool: pg.Pool, hosts: readonly SeenHost[]): Promise<void> {
  await pool.query({
    name: 'gateway_write_hosts',
    text: WRITE,
    values: [
      hosts.map((host) => host.nodeId),
      hosts.map((host) => host.bootId),
      hosts.map((host) => host.address),
      hosts.map((host) => host.fingerprint),
      hosts.map((host) => host.firstAt),
      hosts.map((host) => host.lastAt),
    ],
  });
}

interface RecentRow {
  readonly node_id: string;
  readonly boot_id: string;
  readonly address: string;
  readonly fingerprint: string;
  readonly hosts: number;
  readonly first_ms: number;
  readonly last_ms: number;
}

/**
 * The newest hosts of the last ten minutes, newest first, of each of these nodes that has had more than one; at most {@link MOST_HOSTS}
 * of a node. Those of a node beyond that number are forgotten.
 */
export async function recentHosts(pool: pg.Pool, nodeIds: readonly string[]): Promise<Map<string, SeenHost[]>> {
  const { rows } = await pool.query<RecentRow>({
    name: 'gateway_recent_hosts',
    text: RECENT,
    values: [nodeIds, MOST_HOSTS],
  });
  const crowded = new Set(rows.filter(({ hosts }) => hosts > MOST_HOSTS).map(({ node_id }) => node_id));
  if (crowded.size > 0) {
    await pool.query({ name: 'gateway_trim_hosts', text: TRIM, values: [[...crowded], MOST_HOSTS] });
  }
  const hosts = rows.map((row) => ({
    nodeId: row.node_id,
    bootId: row.boot_id,
    address: row.address,
    fingerprint: row.fingerprint,
    firstAt: row.first_ms,
    lastAt: row.last_ms,
  }));
  return Map.groupBy(hosts, ({ nodeId }) => nodeId);
}

/** Forgets hosts that were not heard for a week. */
export async function forgetHosts(pool: pg.Pool): Promise<void> {
  await pool.query(
    `DELETE FROM telemetry.node_hosts WHERE last_seen_at < clock_timestamp() - interval '${FORGET_DAYS} days'`,
  );
}

/**
 * Two hosts of a node of which the one that was there first is still heard after the other had come; undefined where each took the
 * place of the one before it. `hosts` are those of one node, newest first.
 */
export function conflictAmong(hosts: readonly SeenHost[]): readonly [SeenHost, SeenHost] | undefined {
  for (const later of hosts) {
    const earlier = hosts.find(
      (host) => host !== later && host.firstAt <= later.firstAt && host.lastAt > later.firstAt + OVERLAP_MS,
    );
    if (earlier !== undefined) return [earlier, later];
  }
  return undefined;
}
