import { readCsr } from '../../pki/csr.ts';
import { RenewRequest } from '../../protocol/renew.ts';
import { type AgentRoute, commandOptions } from '../agent-route.ts';
import { problem } from '../answer.ts';
import { renewCertificate } from '../issuance.ts';
import { issuanceAnswer } from '../issuance-answer.ts';

/**
 * POST /v1/agent/certificate/renew -> 200 {certificate_pem, ca_pem, not_after} | 400 csr_… | 409 renewal_not_due | 429. The certificate
 * of the connection says for whom; the request must name nobody else. The old one stays good until the new one is used.
 */
export const renew: AgentRoute<RenewRequest> = {
  name: 'renew',
  body: RenewRequest,
  tooLarge: 'csr_too_large',
  async handle(call, services) {
    const nodeId = call.agent.node.node_id;
    const csr = readCsr(call.body.csr_pem, nodeId);
    if (!csr.ok) return problem(csr.code);
    const { transactor, pki, config } = services;
    const issuance = await renewCertificate(
      { nodeId, fingerprint: call.fingerprint, spkiDer: csr.spkiDer },
      { transactor, pki, lifetimeSeconds: config.certificateLifetimeSeconds },
      commandOptions(call),
    );
    return issuanceAnswer(issuance, nodeId, services);
  },
};
