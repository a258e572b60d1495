import { refuseStepOfHost, type StepOfHost } from '../domain/ca/refuse.ts';
import {
  abortRotation,
  beginRotation,
  completeRotation,
  initializeCa,
  recordGatewayCertificate,
  switchIssuer,
} from '../domain/ca/rotate.ts';
import type { CaState } from '../domain/ca/state.ts';
import type { RotationWitnesses } from '../domain/ca/witnesses.ts';
import type { EventData } from '../domain/event/catalogue.ts';
import type { NodeStatus } from '../domain/node/state.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import {
  allCertificatesInForce,
  certificateByIssuer,
  gateways,
  nodesInStatus,
  rotationByCa,
  rotationFromCa,
} from '../transactor/finders.ts';
import type { Rows } from '../transactor/row-view.ts';

/** Who has not left the fleet. */
const PRESENT: readonly NodeStatus[] = ['provisioning', 'active', 'unhealthy', 'draining', 'lost'];

/** The fleet's CA; undefined for a log that was never told it. */
export function loadCa(rows: Rows): Promise<CaState | undefined> {
  return rows.get('fleet_ca', 'fleet');
}

/** See {@link initializeCa}. */
export const initializeCaCommand: CommandDefinition<EventData<'ca_initialized'>, CaState | undefined> = {
  name: 'initialize_ca',
  load: loadCa,
  decide: initializeCa,
};

/** See {@link beginRotation}. */
export const beginRotationCommand: CommandDefinition<
  EventData<'ca_rotation_begun'>,
  Parameters<typeof beginRotation>[1]
> = {
  name: 'begin_ca_rotation',
  async load(rows, { ca_sha256 }) {
    const [ca, [to], [from]] = await Promise.all([
      loadCa(rows),
      rows.find(rotationByCa, { ca_sha256 }),
      rows.find(rotationFromCa, { ca_sha256 }),
    ]);
    return { ca, sameCa: to ?? from };
  },
  decide: beginRotation,
};

/** See {@link switchIssuer}. */
export const switchIssuerCommand: CommandDefinition<{ rotation_id: string }, Parameters<typeof switchIssuer>[1]> = {
  name: 'switch_ca_issuer',
  async load(rows) {
    const [ca, beacons] = await Promise.all([loadCa(rows), rows.find(gateways, {})]);
    return { ca, gateways: beacons };
  },
  decide: switchIssuer,
};

/** See {@link completeRotation}. */
export const completeRotationCommand: CommandDefinition<object, RotationWitnesses> = {
  name: 'complete_ca_rotation',
  load: loadWitnesses,
  decide: completeRotation,
};

/** Everything that a completion looks at. */
export async function loadWitnesses(rows: Rows): Promise<RotationWitnesses> {
  // One after the other: a forecast reads on a client that takes one query at a time.
  const ca = await loadCa(rows);
  const nodes = await rows.find(nodesInStatus, { statuses: PRESENT });
  const certificates = await rows.find(allCertificatesInForce, {});
  const beacons = await rows.find(gateways, {});
  return { ca, nodes, certificates, gateways: beacons };
}

/** See {@link abortRotation}. */
export const abortRotationCommand: CommandDefinition<object, Parameters<typeof abortRotation>[1]> = {
  name: 'abort_ca_rotation',
  async load(rows) {
    const ca = await loadCa(rows);
    const next = ca?.next_ca_sha256;
    const issued = typeof next === 'string' ? await rows.find(certificateByIssuer, { issuer_ca_sha256: next }) : [];
    return { ca, issued };
  },
  decide: abortRotation,
};

/** See {@link recordGatewayCertificate}. */
export const recordGatewayCertificateCommand: CommandDefinition<
  EventData<'gateway_certificate_issued'>,
  CaState | undefined
> = {
  name: 'record_gateway_certificate',
  load: loadCa,
  decide: recordGatewayCertificate,
};

/** See {@link refuseStepOfHost}. */
export const refuseStepOfHostCommand: CommandDefinition<StepOfHost, CaState | undefined> = {
  name: 'refuse_ca_step',
  load: loadCa,
  decide: refuseStepOfHost,
};
