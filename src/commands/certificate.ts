import { authorizeEnrollment, type Enrollment, recordIssued } from '../domain/certificate/enroll.ts';
import { recordFirstUse } from '../domain/certificate/first-use.ts';
import { revokeCertificates } from '../domain/certificate/revoke.ts';
import type { CertificateState } from '../domain/certificate/state.ts';
import type { EventData } from '../domain/event/catalogue.ts';
import type { NodeState } from '../domain/node/state.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import { certificatesOfNode } from '../transactor/finders.ts';
import type { Rows } from '../transactor/row-view.ts';
import { type AgentCommand, loadAgent } from './agent.ts';

interface NodeCertificates {
  readonly node: NodeState | undefined;
  readonly certificates: readonly CertificateState[];
}

async function loadNodeCertificates(rows: Rows, { node_id }: { node_id: string }): Promise<NodeCertificates> {
  const [node, certificates] = await Promise.all([
    rows.get('fleet_nodes', node_id),
    rows.find(certificatesOfNode, { node_id }),
  ]);
  return { node, certificates };
}

/** See {@link authorizeEnrollment}. */
export const authorizeEnrollmentCommand: CommandDefinition<Enrollment, NodeCertificates> = {
  name: 'authorize_enrollment',
  load: loadNodeCertificates,
  decide: authorizeEnrollment,
};

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
  load: loadAgent,
  decide: recordFirstUse,
};

/** See {@link revokeCertificates}. */
export const revokeCertificatesCommand: CommandDefinition<{ node_id: string }, NodeCertificates> = {
  name: 'revoke_certificates',
  load: loadNodeCertificates,
  decide: revokeCertificates,
};
