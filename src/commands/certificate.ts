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
  return {
    node: await rows.get('fleet_nodes', node_id),
    certificates: await rows.find(certificatesOfNode, { node_id }),
  };
}

/** See {@link authorizeEnrollment}. */
export const authorizeEnrollmentCommand: CommandDefinition<Enrollment, NodeCertificates> = {
  name: 'authorize_enrollment',
  prefetch: ({ node_id }) => ({ fleet_nodes: [node_id] }),
  load: loadNodeCertificates,
  decide: authorizeEnrollment,
};

/** See {@link recordIssued}. */
export const recordIssuedCommand: CommandDefinition<
  EventData<'certificate_issued'> & { tbs_sha256: string },
  Parameters<typeof recordIssued>[1]
> = {
  name: 'record_issued',
  prefetch: (c) => ({ fleet_nodes: [c.node_id], fleet_node_certificates: [c.certificate_id] }),
  load: async (rows, c) => ({
    node: await rows.get('fleet_nodes', c.node_id),
    certificate: await rows.get('fleet_node_certificates', c.certificate_id),
  }),
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
  prefetch: ({ node_id }) => ({ fleet_nodes: [node_id] }),
  load: loadNodeCertificates,
  decide: revokeCertificates,
};
