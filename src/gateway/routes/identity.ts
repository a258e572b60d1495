import { FLEET } from '../../../projections/fleet-ca.ts';
import type { CaState } from '../../domain/ca/state.ts';
import { renewalReason } from '../../domain/certificate/renew.ts';
import type { IdentityResponse } from '../../protocol/identity.ts';
import { selectByKeys } from '../../tables/statements.ts';
import type { AgentRoute } from '../agent-route.ts';
import { success } from '../answer.ts';
import { reading } from '../database.ts';

/**
 * GET /v1/agent/identity -> 200: who the gateway takes the connection for, which trust bundle it hands out, and whether the certificate
 * is due for renewal. Agents ask every ten minutes and renew only when they are told so.
 */
export const identity: AgentRoute<undefined> = {
  name: 'identity',
  body: undefined,
  async handle({ agent: { node, certificate }, fingerprint, tick }, { pki, pool }) {
    const { rows } = await reading(() => pool.query<CaState>(selectByKeys('fleet_ca', [FLEET])));
    const reason = renewalReason(certificate, rows[0], tick.nowMs);
    return success({
      node_id: node.node_id,
      status: node.status,
      certificate: {
        fingerprint_sha256: fingerprint,
        serial: certificate.certificate_id,
        not_before: new Date(certificate.not_before).toISOString(),
        not_after: new Date(certificate.not_after).toISOString(),
      },
      trust_bundle_sha256: pki.current.bundleSha256,
      renewal: { due: reason !== null, reason },
    } satisfies IdentityResponse);
  },
};
