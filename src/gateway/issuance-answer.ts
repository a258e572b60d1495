import { describeRefusal } from '../domain/refusal.ts';
import type { RenewResponse } from '../protocol/renew.ts';
import { type Answer, problem, refused, success } from './answer.ts';
import type { Issuance } from './issuance.ts';
import type { Services } from './services.ts';

/**
 * What an issuance is to the agent: 200 with the certificate and the trust bundle of now, or the error. Of a 503 the agent is told no
 * more than to try again; the reason is logged, since the operator has to act.
 */
export function issuanceAnswer(
  issuance: Issuance,
  nodeId: string,
  { pki, log }: Pick<Services, 'pki' | 'log'>,
): Answer {
  if ('unavailable' in issuance) {
    log.error({ node: nodeId }, `no certificate is issued: ${issuance.unavailable}`);
    return problem('unavailable');
  }
  if (!issuance.ok) {
    const answer = refused(issuance.refusal);
    if (answer.status === 503) log.error(issuance.refusal.details, describeRefusal(issuance.refusal).message);
    return answer;
  }
  const { certificatePem, notAfterMs } = issuance.value;
  return success({
    certificate_pem: certificatePem,
    ca_pem: pki.current.bundlePem,
    not_after: new Date(notAfterMs).toISOString(),
  } satisfies RenewResponse);
}
