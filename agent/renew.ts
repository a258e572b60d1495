import { checkCertificate } from './certificate-check.ts';
import { createCsr } from './csr.ts';
import type { GatewayClient } from './gateway-client.ts';
import { type IdentityStore, renewalOf } from './identity-store.ts';

/** What a renewal needs. */
export interface RenewDependencies {
  readonly nodeId: string;
  readonly store: IdentityStore;
  /** Presents the certificate that is to be followed. */
  readonly client: Pick<GatewayClient, 'identity' | 'renew'>;
  readonly signal: AbortSignal;
}

/** How one attempt ended. Of all but `staged` the identity in force is as it was. */
export type RenewOutcome =
  | { readonly kind: 'staged'; readonly generation: number; readonly notAfter: Date }
  | { readonly kind: 'not_due' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'unanswered'; readonly reason: string; readonly retryAfterMs: number };

/**
 * Asks once for a certificate that follows the client's own, for a key of its own, and stages it as the identity in force; the former
 * one stays on disk. May be killed anywhere and run again: until the answer is staged, the same certificate is followed with the same key,
 * for which the gateway answers the same certificate. Asks again even when an earlier run's answer is there, because that may be outdated.
 */
export async function renew({ nodeId, store, client, signal }: RenewDependencies): Promise<RenewOutcome> {
  const { generation, key } = await store.pendingKey(renewalOf(client.identity.certificate));
  const answer = await client.renew({ csr_pem: createCsr(nodeId, key) }, signal);
  switch (answer.kind) {
    case 'granted': {
      const check = checkCertificate(nodeId, key, answer.certificatePem, answer.caPem);
      if (!check.ok) return { kind: 'refused', reason: `the certificate in the answer is refused: ${check.problem}` };
      await store.activate(generation, answer.certificatePem, answer.caPem);
      return { kind: 'staged', generation, notAfter: check.certificate.validToDate };
    }
    case 'not_due':
    case 'refused':
      // This key gets no certificate now: the next attempt is to have another.
      await store.discardPending(generation);
      return answer;
    case 'unauthenticated':
      return { kind: 'refused', reason: `the gateway answered 401 ${answer.code ?? ''}`.trimEnd() };
    case 'undecided':
      return { kind: 'unanswered', reason: answer.reason, retryAfterMs: answer.retryAfterMs ?? 0 };
    case 'aborted':
      return { kind: 'unanswered', reason: 'stopped before the gateway answered', retryAfterMs: 0 };
  }
}
