import type pg from 'pg';
import { loadWitnesses } from '../commands/ca.ts';
import { type Blocker, rotationBlockers } from '../domain/ca/blockers.ts';
import { gatewaysNotTrusting, liveGateways } from '../domain/ca/rotate.ts';
import type { CaState } from '../domain/ca/state.ts';
import type { Queryable } from '../log/postgres/reader.ts';
import { readSnapshot } from '../projector/generation.ts';
import { RowView } from '../transactor/row-view.ts';
import { type GatewayPki, readGatewayPki } from './gateway-pki.ts';

/** A gateway that is alive, what it says of its files, and the trusted CAs that it lacks. */
export interface GatewayStatus {
  readonly program: string;
  readonly pki: GatewayPki | undefined;
  readonly missing: readonly string[];
}

/** Who issues, who is trusted, how far the nodes are, and what gateways say. Times are ms. */
export interface CaStatus {
  readonly nowMs: number;
  readonly ca: CaState | undefined;
  /** Nodes that have a used certificate of the CA that is to stay, of those that have to. */
  readonly moved: number;
  readonly nodes: number;
  readonly blockers: readonly Blocker[];
  readonly gateways: readonly GatewayStatus[];
}

/** Reads the state of the CA on one snapshot; judged by the very rules that a completion is decided by. */
export function readCaStatus(pool: pg.Pool): Promise<CaStatus> {
  return readSnapshot(pool, async (client) => {
    const { rows } = await client.query<{ now: number }>('SELECT clock_timestamp() AS now');
    const nowMs = rows[0]?.now ?? Date.now();
    const { ca, nodes, certificates, gateways } = await loadWitnesses(new RowView(client));
    const staying = ca?.next_ca_sha256 ?? ca?.current_ca_sha256;
    const blockers = staying === undefined ? [] : rotationBlockers(staying, { nodes, certificates }, nowMs);
    const present = nodes.filter(
      ({ status }) => status === 'active' || status === 'unhealthy' || status === 'draining',
    );
    const blocked = new Set(blockers.map(({ node_id }) => node_id));
    const details = await beaconDetails(client);
    const live = liveGateways(gateways, nowMs).map(({ program }) => ({
      program,
      pki: readGatewayPki(details.get(program)),
      missing: (ca?.trusted ?? []).flatMap(({ sha256 }) =>
        gatewaysNotTrusting(sha256, gateways, nowMs).includes(program) ? [sha256] : [],
      ),
    }));
    const moved = present.filter(({ node_id }) => !blocked.has(node_id)).length;
    return { nowMs, ca, moved, nodes: present.length, blockers, gateways: live };
  });
}

async function beaconDetails(db: Queryable): Promise<ReadonlyMap<string, unknown>> {
  const { rows } = await db.query<{ program: string; details: unknown }>(
    `SELECT program, details FROM telemetry.programs WHERE kind = 'gateway'`,
  );
  return new Map(rows.map(({ program, details }) => [program, details]));
}
