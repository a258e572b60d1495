import { type Conflict, recordConflict } from '../domain/certificate/conflict.ts';
import { authorizeEnrollment, type Enrollment, recordIssued } from '../domain/certificate/enroll.ts';
import { recordFirstUse } from '../domain/certificate/first-use.ts';
import { authorizeRenewal, type Renewal } from '../domain/certificate/renew.ts';
import { type RevokeCertificates, revokeCertificates } from '../domain/certificate/revoke.ts';
import type { EventData } from '../domain/event/catalogue.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import { certificateBySecret, certificatesInForce } from '../transactor/finders.ts';
import type { Rows } from '../transactor/row-view.ts';
import { type AgentCommand, loadAgent } from './agent.ts';
import { loadCa } from './ca.ts';

/** See {@link authorizeEnrollment}. */
export const authorizeEnrollmentCommand: CommandDefinition<Enrollment, Parameters<typeof authorizeEnrollment>[1]> = {
  name: 'authorize_enrollment',
  async load(rows, { node_id, secret_sha256 }) {
    const [node, [given], ca] = await Promise.all([
      rows.get('fleet_nodes', node_id),
      rows.find(certificateBySecret, { secret_sha256 }),
      loadCa(rows),
    ]);
    return { node, given, ca };
  },
  decide: authorizeEnrollment,
};

/** See {@link authorizeRenewal}. */
export const authorizeRenewalCommand: CommandDefinition<Renewal, Parameters<typeof authorizeRenewal>[1]> = {
  name: 'authorize_renewal',
  async load(rows, command) {
    const [agent, ca] = await Promise.all([loadAgentWithCertificates(rows, command), loadCa(rows)]);
    return { ...agent, ca };
  },
  decide: authorizeRenewal,
};

async function loadAgentWithCertificates(rows: Rows, agent: AgentCommand) {
  const { node, certificate } = await loadAgent(rows, agent);
  const inForce = node === undefined ? [] : await rows.find(certificatesInForce, { node_id: node.node_id });
  return { node, certificate, inForce };
}

/** See {@link recordIssued}. */
export const recordIssuedCommand: CommandDefinition<
  EventData<'certificate_issued'> & { tbs_sha256: string },
  Parameters<typeof recordIssued>[1]
> = {
  name: 'record_issued',
  async load(rows, { node_id, certificate_id }) {
    const [node, certificate] = await Promise.all([
      rows.get('fleet_nodes', node_id),
      rows.get('fleet_node_certificates', certificate_id),
    ]);
    return { node, certificate };
  },
  decide: recordIssued,
};

/** See {@link recordFirstUse}. */
export const recordFirstUseCommand: CommandDefinition<AgentCommand, Parameters<typeof recordFirstUse>[1]> = {
  name: 'record_first_use',
  load: loadAgentWithCertificates,
  decide: recordFirstUse,
};

/** See {@link recordConflict}. */
export const recordConflictCommand: CommandDefinition<Conflict, Parameters<typeof recordConflict>[1]> = {
  name: 'record_conflict',
  load: loadAgent,
  decide: recordConflict,
};

/** See {@link revokeCertificates}. */
export const revokeCertificatesCommand: CommandDefinition<
  RevokeCertificates,
  Parameters<typeof revokeCertificates>[1]
> = {
  name: 'revoke_certificates',
  async load(rows, { node_id, certificate_id }) {
    const [node, inForce, named] = await Promise.all([
      rows.get('fleet_nodes', node_id),
      rows.find(certificatesInForce, { node_id }),
      certificate_id === undefined ? undefined : rows.get('fleet_node_certificates', certificate_id),
    ]);
    return { node, inForce, named };
  },
  decide: revokeCertificates,
};
