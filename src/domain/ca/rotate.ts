import { append, type Decision, type DecisionTime, nothing, refuse, replying } from '../decision.ts';
import type { EventData } from '../event/catalogue.ts';
import { CA_STREAM } from '../stream.ts';
import { rotationBlockers } from './blockers.ts';
import { MOST_NAMED, MOST_REVOKED } from './events.ts';
import { refused } from './refuse.ts';
import { type CaState, GATEWAY_LIVE_MS, type GatewayBeacon, type RotationState } from './state.ts';
import type { RotationWitnesses } from './witnesses.ts';

/**
 * Records the fleet's first CA. The same CA again is nothing new. Refuses on record: ca_rotation_running (while one is, the files of a host
 * may hold either CA), ca_already_initialized.
 */
export function initializeCa(ca: EventData<'ca_initialized'>, known: CaState | undefined): Decision {
  if (known === undefined) return append(CA_STREAM, { type: 'ca_initialized', data: ca });
  if (known.rotation_id !== null) {
    return refused('init', 'ca_rotation_running', known, { details: { rotation_id: known.rotation_id } });
  }
  if (known.current_ca_sha256 === ca.ca_sha256) return nothing();
  return refused('init', 'ca_already_initialized', known, { details: { ca_sha256: known.current_ca_sha256 } });
}

/**
 * Begins a rotation: from now on a second CA is trusted; the first one goes on issuing. `previous_ca_sha256` is the CA in the host's
 * files. The same new CA again is nothing new and tells the rotation's id. Refuses: ca_not_initialized, and on record
 * ca_rotation_running, ca_files_differ, ca_used_before.
 */
export function beginRotation(
  rotation: EventData<'ca_rotation_begun'>,
  {
    ca,
    sameCa,
  }: {
    ca: CaState | undefined;
    /** An earlier rotation to this CA or away from it. */
    sameCa: RotationState | undefined;
  },
): Decision {
  if (ca === undefined) return refuse('ca_not_initialized');
  if (ca.rotation_id !== null) {
    if (ca.next_ca_sha256 === rotation.ca_sha256) return nothing({ rotation_id: ca.rotation_id });
    return refused('begin', 'ca_rotation_running', ca, { details: { rotation_id: ca.rotation_id } });
  }
  if (rotation.previous_ca_sha256 !== ca.current_ca_sha256) {
    const details = { ca_sha256: ca.current_ca_sha256, file_ca_sha256: rotation.previous_ca_sha256 };
    return refused('begin', 'ca_files_differ', ca, { details });
  }
  if (sameCa !== undefined || rotation.ca_sha256 === ca.current_ca_sha256) {
    return refused('begin', 'ca_used_before', ca, { details: { ca_sha256: rotation.ca_sha256 } });
  }
  const begun = append(CA_STREAM, { type: 'ca_rotation_begun', data: rotation });
  return replying(begun, { rotation_id: rotation.rotation_id });
}

/**
 * Lets the new CA issue, and only it. Refuses: ca_not_initialized, and on record ca_rotation_unknown, ca_not_trusted_everywhere: a gateway
 * that does not trust the new CA would turn away the first agent that has a certificate of it.
 */
export function switchIssuer(
  { rotation_id }: { rotation_id: string },
  { ca, gateways }: { ca: CaState | undefined; gateways: readonly GatewayBeacon[] },
  { now }: Pick<DecisionTime, 'now'>,
): Decision {
  if (ca === undefined) return refuse('ca_not_initialized');
  const next = ca.next_ca_sha256;
  if (ca.rotation_id !== rotation_id || next === null) {
    return refused('issue', 'ca_rotation_unknown', ca, { details: { rotation_id } });
  }
  if (ca.issuing_ca_sha256 === next) return nothing();
  const blind = gatewaysNotTrusting(next, gateways, now);
  if (blind.length > 0) return refused('issue', 'ca_not_trusted_everywhere', ca, { gateways: blind });
  const trusting = liveGateways(gateways, now).map(({ program }) => program);
  return append(CA_STREAM, {
    type: 'ca_issuer_switched',
    data: { rotation_id, ca_sha256: next, gateways: trusting.slice(0, MOST_NAMED) },
  });
}

/**
 * Ends a rotation: the old CA is not trusted any more and every agent certificate that is not of the new one is revoked, all in one
 * event. Refuses: ca_not_initialized, and on record ca_no_rotation, ca_rotation_not_issuing, ca_rotation_blocked (somebody would be locked
 * out), ca_rotation_too_large.
 */
export function completeRotation(
  _: object,
  { ca, nodes, certificates, gateways }: RotationWitnesses,
  { now }: Pick<DecisionTime, 'now'>,
): Decision {
  if (ca === undefined) return refuse('ca_not_initialized');
  const next = ca.next_ca_sha256;
  if (ca.rotation_id === null || next === null) return refused('complete', 'ca_no_rotation', ca);
  if (ca.issuing_ca_sha256 !== next) return refused('complete', 'ca_rotation_not_issuing', ca);
  const blockers = rotationBlockers(next, { nodes, certificates }, now);
  const blind = gatewaysNotTrusting(next, gateways, now);
  if (blockers.length > 0 || blind.length > 0) {
    return refused('complete', 'ca_rotation_blocked', ca, { blockers, gateways: blind });
  }
  const revoked = certificates.filter((c) => c.issuer_ca_sha256 !== next).map((c) => c.certificate_id);
  if (revoked.length > MOST_REVOKED) {
    return refused('complete', 'ca_rotation_too_large', ca, { details: { certificates: revoked.length } });
  }
  const completed = append(CA_STREAM, {
    type: 'ca_rotation_completed',
    data: {
      rotation_id: ca.rotation_id,
      previous_ca_sha256: ca.current_ca_sha256,
      ca_sha256: next,
      revoked_certificate_ids: revoked,
    },
  });
  return replying(completed, { rotation_id: ca.rotation_id, revoked: revoked.length });
}

/**
 * Takes a rotation back, as long as no certificate of the new CA can be out there: one that was authorised counts. Refuses:
 * ca_not_initialized, and on record ca_no_rotation, ca_has_issued.
 */
export function abortRotation(
  _: object,
  { ca, issued }: { ca: CaState | undefined; issued: readonly { certificate_id: string }[] },
): Decision {
  if (ca === undefined) return refuse('ca_not_initialized');
  const next = ca.next_ca_sha256;
  if (ca.rotation_id === null || next === null) return refused('abort', 'ca_no_rotation', ca);
  const [first] = issued;
  if (first !== undefined) {
    return refused('abort', 'ca_has_issued', ca, { details: { certificate_id: first.certificate_id } });
  }
  const aborted = append(CA_STREAM, {
    type: 'ca_rotation_aborted',
    data: { rotation_id: ca.rotation_id, ca_sha256: next, restored_ca_sha256: ca.current_ca_sha256 },
  });
  return replying(aborted, { rotation_id: ca.rotation_id });
}

/**
 * Records a gateway's server certificate before its file is written. Until a rotation is completed it is of the old CA: agents that have
 * not renewed, and secrets rendered before, trust no other. Refuses: ca_not_initialized, and on record issuer_not_current.
 */
export function recordGatewayCertificate(
  issued: EventData<'gateway_certificate_issued'>,
  ca: CaState | undefined,
): Decision {
  if (ca === undefined) return refuse('ca_not_initialized');
  if (issued.issuer_ca_sha256 !== ca.current_ca_sha256) {
    const action = issued.cause === 'init' ? 'init' : 'reissue';
    return refused(action, 'issuer_not_current', ca, { details: { issuer_ca_sha256: ca.current_ca_sha256 } });
  }
  return append(CA_STREAM, { type: 'gateway_certificate_issued', data: issued });
}

/** Gateways that are alive, by their beacons. */
export function liveGateways<T extends Pick<GatewayBeacon, 'kind' | 'beacon_at'>>(
  gateways: readonly T[],
  now: number,
): readonly T[] {
  return gateways.filter(({ kind, beacon_at }) => kind === 'gateway' && now - beacon_at <= GATEWAY_LIVE_MS);
}

/** Live gateways that would turn away an agent with a certificate of this CA: their names. */
function gatewaysNotTrusting(caSha256: string, gateways: readonly GatewayBeacon[], now: number): readonly string[] {
  return liveGateways(gateways, now)
    .filter(({ trusted_ca_sha256s }) => !trusted_ca_sha256s.includes(caSha256))
    .map(({ program }) => program);
}
