import type { IdentityResponse } from '../../protocol/identity.ts';
import type { AgentRoute } from '../agent-route.ts';
import { success } from '../answer.ts';

/** GET /v1/agent/identity -> 200: who the gateway takes the connection for, and which trust bundle it hands out. */
export const identity: AgentRoute<undefined> = {
  name: 'identity',
  body: undefined,
  handle: ({ agent: { node, certificate }, fingerprint }, { pki }) =>
    success({
      node_id: node.node_id,
      status: node.status,
      certificate: {
        fingerprint_sha256: fingerprint,
        serial: certificate.certificate_id,
        not_before: new Date(certificate.not_before).toISOString(),
        not_after: new Date(certificate.not_after).toISOString(),
      },
      trust_bundle_sha256: pki.current.bundleSha256,
    } satisfies IdentityResponse),
};
