import type { AgentIdentity } from '../domain/certificate/authenticate.ts';
import type { CertificateState } from '../domain/certificate/state.ts';
import type { NodeState } from '../domain/node/state.ts';
import { certificateByFingerprint } from '../transactor/finders.ts';
import type { Rows } from '../transactor/row-view.ts';

/** What every command of an agent carries: its connection's fingerprint, checked again under the lock. */
export type AgentCommand = AgentIdentity;

/** The certificate that an agent presented, and its node. */
export async function loadAgent(
  rows: Rows,
  { fingerprint }: AgentIdentity,
): Promise<{ certificate: CertificateState | undefined; node: NodeState | undefined }> {
  const [certificate] = await rows.find(certificateByFingerprint, { fingerprint });
  const node = certificate === undefined ? undefined : await rows.get('fleet_nodes', certificate.node_id);
  return { certificate, node };
}
