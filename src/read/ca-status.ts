import type pg from 'pg';
import { loadWitnesses } from '../commands/ca.ts';
import { type Blocker, mustMove, rotationBlockers } from '../domain/ca/blockers.ts';
import type { BlockingReason } from '../domain/ca/events.ts';
import { gatewaysNotTrusting, liveGateways } from '../domain/ca/rotate.ts';
import type { CaState, RotationState } from '../domain/ca/state.ts';
import type { RotationWitnesses } from '../domain/ca/witnesses.ts';
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

/** A node that has to be on the CA that stays, whether it is, and what of it keeps a rotation from being completed. */
interface NodeCaStatus {
  readonly node_id: string;
  readonly name: string;
  readonly moved: boolean;
  readonly blockers: readonly Blocker[];
}

/** Who issues, who is trusted, how far the nodes are, and what gateways say. Times are ms. */
export interface CaStatus {
  readonly nowMs: number;
  readonly ca: CaState | undefined;
  /** The one that is under way. */
  readonly rotation: RotationState | undefined;
  readonly nodes: readonly NodeCaStatus[];
  /** Those of all nodes: also of one that has not enrolled yet. */
  readonly blockers: readonly Blocker[];
  readonly gateways: readonly GatewayStatus[];
}

/** Whether this keeps a node on the old CA. The others are of secrets, and may block for a node that has moved. */
const keepsBack: Readonly<Record<BlockingReason, boolean>> = {
  never_renewed: true,
  renewed_never_used: true,
  no_certificate: true,
  secret_without_new_ca: false,
  enrolling: false,
};

/** Reads the state of the CA on one snapshot; judged by the very rules that a completion is decided by. */
export function readCaStatus(pool: pg.Pool): Promise<CaStatus> {
  return readSnapshot(pool, async (client) => {
    const nowMs = await readClock(client);
    const rows = new RowView(client);
    const witnesses = await loadWitnesses(rows);
    const { ca, gateways } = witnesses;
    const rotationId = ca?.rotation_id ?? null;
    const rotation = rotationId === null ? undefined : await rows.get('ca_rotations', rotationId);
    const blockers =
      ca === undefined ? [] : rotationBlockers(ca.next_ca_sha256 ?? ca.current_ca_sha256, witnesses, nowMs);
    const details = await beaconDetails(client);
    const live = liveGateways(gateways, nowMs).map(({ program }) => ({
      program,
      pki: readGatewayPki(details.get(program)),
      missing: (ca?.trusted ?? []).flatMap(({ sha256 }) =>
        gatewaysNotTrusting(sha256, gateways, nowMs).includes(program) ? [sha256] : [],
      ),
    }));
    return { nowMs, ca, rotation, nodes: nodeStatuses(witnesses, blockers), blockers, gateways: live };
  });
}

function nodeStatuses({ nodes }: Pick<RotationWitnesses, 'nodes'>, blockers: readonly Blocker[]): NodeCaStatus[] {
  const byNode = Map.groupBy(blockers, ({ node_id }) => node_id);
  return nodes
    .filter(({ status }) => mustMove[status])
    .map(({ node_id, name }) => {
      const own = byNode.get(node_id) ?? [];
      return { node_id, name, moved: !own.some(({ reason }) => keepsBack[reason]), blockers: own };
    });
}

async function readClock(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ now: number }>('SELECT clock_timestamp() AS now');
  const [row] = rows;
  if (row === undefined) throw new Error('the database did not tell its clock');
  return row.now;
}

async function beaconDetails(db: Queryable): Promise<ReadonlyMap<string, unknown>> {
  const { rows } = await db.query<{ program: string; details: unknown }>(
    `SELECT program, details FROM telemetry.programs WHERE kind = 'gateway'`,
  );
  return new Map(rows.map(({ program, details }) => [program, details]));
}
