import type { CertificateState } from '../domain/certificate/state.ts';
import type { EventRow } from '../domain/event/state.ts';
import type { JobState } from '../domain/job/state.ts';
import { ok, type Result } from '../domain/result.ts';
import { SCHEDULER } from '../domain/scheduler/state.ts';
import { silentMs } from '../domain/silence.ts';
import { type ListedNode, withLiveness } from './fleet-list.ts';
import type { FleetView, ViewMoment } from './fleet-view.ts';
import { type Losses, readLosses } from './losses.ts';
import { resolveNode } from './resolve-node.ts';

/** Everything that is known of one node. */
export interface NodeDetails extends ListedNode {
  readonly moment: ViewMoment;
  readonly live: boolean;
  /** The newest first. */
  readonly certificates: readonly CertificateState[];
  /** The newest first. */
  readonly jobs: readonly JobState[];
  /** The last events of the node itself, oldest first. */
  readonly timeline: readonly EventRow[];
  /** How long it could have been heard and was not, ms; null where that is not known, as in the past. */
  readonly silentMs: number | null;
  /** Where silent nodes are not given up. */
  readonly losses: Losses;
}

const JOBS_SHOWN = 10;

/** Reads one node by name, id or beginning of an id. Refuses: node_unknown, node_ambiguous. */
export async function readNode(
  view: FleetView,
  reference: string,
  timelineLimit: number,
): Promise<Result<NodeDetails>> {
  const resolved = await resolveNode(view, reference);
  if (!resolved.ok) return resolved;
  const { node_id: nodeId } = resolved.value;
  const [listed] = await withLiveness(view, [resolved.value]);
  if (listed === undefined) throw new Error('a node that was asked for was not answered');
  const scheduler = view.telemetry === null ? undefined : await view.rows.get('scheduler', SCHEDULER);
  return ok({
    ...listed,
    silentMs: silentMs(listed.liveness ?? undefined, scheduler) ?? null,
    losses: await readLosses(view),
    live: view.telemetry !== null,
    moment: view.moment,
    certificates: await view.certificates(nodeId),
    jobs: await view.jobs({ nodeId, limit: JOBS_SHOWN }),
    timeline: await view.timeline(nodeId, timelineLimit),
  });
}

/** Where a certificate is in its life at a time (ms). */
export type CertificateStatus = 'not_issued' | 'revoked' | 'expired' | 'valid';

/** The status of a certificate at a time (ms); revoked says more than expired. */
export function certificateStatus(certificate: CertificateState, nowMs: number): CertificateStatus {
  if (certificate.revoked_at !== null) return 'revoked';
  if (certificate.certificate_pem === null) return 'not_issued';
  return certificate.not_after <= nowMs ? 'expired' : 'valid';
}
