import { type Blocker, mustMove, rotationBlockers } from '../domain/ca/blockers.ts';
import type { BlockingReason } from '../domain/ca/events.ts';
import type { CaState, RotationState } from '../domain/ca/state.ts';
import type { NodeState } from '../domain/node/state.ts';
import type { ProgramRow } from './database.ts';
import type { FleetView, ViewMoment } from './fleet-view.ts';
import { type LiveGatewayPki, liveGatewayPkis } from './gateway-pki.ts';

/** Far more certificates in force than a fleet of this design has. */
const WHOLE_FLEET = 100_000;

/** A gateway that is alive, what it says of its files, and the trusted CAs that it lacks. */
export interface GatewayStatus extends LiveGatewayPki {
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
  readonly moment: ViewMoment;
  readonly ca: CaState | undefined;
  /** The one that is under way. */
  readonly rotation: RotationState | undefined;
  readonly nodes: readonly NodeCaStatus[];
  /** Those of all nodes: also of one that has not enrolled yet. */
  readonly blockers: readonly Blocker[];
  /** Telemetry: null in the past. */
  readonly gateways: readonly GatewayStatus[] | null;
}

/** Whether this keeps a node on the old CA. The others are of secrets, and may block for a node that has moved. */
const keepsBack: Readonly<Record<BlockingReason, boolean>> = {
  never_renewed: true,
  renewed_never_used: true,
  no_certificate: true,
  secret_without_new_ca: false,
  enrolling: false,
};

/** What a view shows of the CA; judged by the very rules that a completion is decided by. */
export async function readCaStatus(view: FleetView): Promise<CaStatus> {
  const { moment, telemetry } = view;
  const ca = await view.ca();
  const nodes = await view.nodes({});
  // In force at the beginning of time: every one that is not revoked, also the expired ones.
  const certificates = await view.certificatesOf({ inForceAt: 0, limit: WHOLE_FLEET });
  const rotation = typeof ca?.rotation_id === 'string' ? await view.rotation(ca.rotation_id) : undefined;
  const staying = ca?.next_ca_sha256 ?? ca?.current_ca_sha256;
  const blockers = staying === undefined ? [] : rotationBlockers(staying, { nodes, certificates }, moment.nowMs);
  const programs = await telemetry?.gateways();
  const gateways = programs === undefined ? null : gatewayStatuses(programs, ca, moment.nowMs);
  return { moment, ca, rotation, nodes: nodeStatuses(nodes, blockers), blockers, gateways };
}

function gatewayStatuses(programs: readonly ProgramRow[], ca: CaState | undefined, nowMs: number): GatewayStatus[] {
  const trusted = (ca?.trusted ?? []).map(({ sha256 }) => sha256);
  return liveGatewayPkis(programs, nowMs).map((gateway) => ({
    ...gateway,
    missing: trusted.filter((sha256) => gateway.pki?.trusted_ca_sha256s.includes(sha256) !== true),
  }));
}

function nodeStatuses(nodes: readonly NodeState[], blockers: readonly Blocker[]): NodeCaStatus[] {
  const byNode = Map.groupBy(blockers, ({ node_id }) => node_id);
  return nodes
    .filter(({ status }) => mustMove[status])
    .map(({ node_id, name }) => {
      const own = byNode.get(node_id) ?? [];
      return { node_id, name, moved: !own.some(({ reason }) => keepsBack[reason]), blockers: own };
    });
}
