import { type Decision, refuse, refuseOnRecord } from '../decision.ts';
import type { EventData } from '../event/catalogue.ts';
import type { RefusalDetail } from '../result.ts';
import { CA_STREAM } from '../stream.ts';
import type { Blocker } from './blockers.ts';
import { type HostRefusal, MOST_NAMED, type RotationRefusal } from './events.ts';
import type { CaState } from './state.ts';

/** A step that a host cannot take, because of its files. */
export interface StepOfHost {
  readonly action: EventData<'ca_rotation_refused'>['action'];
  readonly reason: HostRefusal;
  readonly details: Readonly<Record<string, RefusalDetail>>;
}

/** Refuses on record what the files of a host do not allow. Refuses otherwise: ca_not_initialized, while there is no CA to attempt anything with. */
export function refuseStepOfHost({ action, reason, details }: StepOfHost, ca: CaState | undefined): Decision {
  if (ca === undefined) return refuse('ca_not_initialized');
  return refused(action, reason, ca, { details });
}

interface Grounds {
  readonly blockers?: readonly Blocker[];
  readonly gateways?: readonly string[];
  readonly details?: Readonly<Record<string, RefusalDetail>>;
}

/** A refusal that is an event as well: an auditor sees every attempt. */
export function refused(
  action: EventData<'ca_rotation_refused'>['action'],
  reason: RotationRefusal,
  { rotation_id }: CaState,
  { blockers = [], gateways = [], details = {} }: Grounds = {},
): Decision {
  const named = blockers.slice(0, MOST_NAMED);
  const told = {
    nodes: blockers.map(describeBlocker),
    node_count: new Set(blockers.map((b) => b.node_id)).size,
    gateways,
    ...details,
  };
  return refuseOnRecord(reason, told, CA_STREAM, {
    type: 'ca_rotation_refused',
    data: {
      rotation_id,
      action,
      reason,
      blocking_node_ids: named.map((b) => b.node_id),
      blocking_reasons: named.map((b) => b.reason),
      blocking_gateways: gateways.slice(0, MOST_NAMED),
    },
  });
}

function describeBlocker({ name, reason, until }: Blocker): string {
  return `${name}: ${reason}${until === null ? '' : `, expires at ${new Date(until).toISOString()}`}`;
}
