import { readCsr } from '../../pki/csr.ts';
import { EnrollRequest } from '../../protocol/enroll.ts';
import { BODY_MAX_BYTES } from '../../protocol/limits.ts';
import { correlationId, goneSignal, type HttpContext, parseBody } from '../agent-route.ts';
import { type Answer, problem, readBody } from '../answer.ts';
import type { EnrollLimits } from '../enroll-limits.ts';
import { enroll } from '../issuance.ts';
import { issuanceAnswer } from '../issuance-answer.ts';
import type { Services } from '../services.ts';

/**
 * POST /v1/enroll -> 200 {certificate_pem, ca_pem, not_after} | 400 csr_… | 401 enrollment_refused | 429. In the order that costs a
 * stranger most and the fleet least: rate limits, body, certificate request (uses nothing up), secret.
 */
export async function enrollRoute(context: HttpContext, services: Services, limits: EnrollLimits): Promise<Answer> {
  const { incoming } = context.env;
  if (!limits.admitsAddress(incoming.socket.remoteAddress ?? '')) return { ...problem('rate_limited'), close: true };
  const parsed = parseBody(await readBody(incoming, BODY_MAX_BYTES), EnrollRequest, 'csr_too_large');
  if (!parsed.ok) return parsed.answer;
  const { node_id: nodeId, enrollment_secret: secretHex, csr_pem: csrPem } = parsed.value;
  if (!limits.admitsNode(nodeId)) return { ...problem('rate_limited'), close: true };
  const csr = readCsr(csrPem, nodeId);
  if (!csr.ok) return problem(csr.code);
  const { transactor, pki, config, gatewayId } = services;
  const issuance = await enroll(
    { nodeId, secretHex, spkiDer: csr.spkiDer },
    { transactor, pki, lifetimeSeconds: config.certificateLifetimeSeconds },
    {
      actor: { kind: 'gateway', id: gatewayId },
      correlationId: correlationId(incoming),
      signal: goneSignal(context),
    },
  );
  return issuanceAnswer(issuance, nodeId, services);
}
