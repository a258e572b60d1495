import type { AgentConfig } from '../config.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import { GatewayClient } from '../gateway-client.ts';
import { GatewayConnection } from '../gateway-connection.ts';
import { IdentityStore } from '../identity-store.ts';
import type { Log } from '../log.ts';
import { diskFs } from '../state-fs.ts';
import { systemTime } from '../time.ts';
import { stopOnSignals } from './stopping.ts';

/**
 * `pushleft-agent renew-certificate`: one attempt. A running agent takes the new identity up at its next check, and its first lease with it
 * retires the former one. Exits 1 when the gateway refuses or nothing is due, 3 when it does not answer or does not take the new certificate.
 */
export async function renewCertificateCommand(config: AgentConfig, log: Log): Promise<ExitCode> {
  const { nodeId, gatewayUrl } = config;
  const stopping = stopOnSignals();
  const store = new IdentityStore(diskFs, config.stateDir);
  const identity = await store.current();
  if (identity === undefined) {
    log.error({ node: nodeId }, 'no identity is staged: run pushleft-agent enroll first');
    return EXIT.refused;
  }
  const client = new GatewayClient(gatewayUrl, identity, systemTime);
  const deps = { nodeId, gatewayUrl, store, time: systemTime, log };
  const connection = new GatewayConnection(deps, client, identity.generation);
  try {
    const outcome = await connection.renew(stopping);
    switch (outcome.kind) {
      case 'swapped': {
        const { generation, certificate } = connection.client.identity;
        const notAfter = certificate.validToDate.toISOString();
        log.info({ node: nodeId, generation, not_after: notAfter }, 'certificate renewed');
        return EXIT.done;
      }
      case 'not_due': {
        const notAfter = identity.certificate.validToDate.toISOString();
        log.warn({ node: nodeId, not_after: notAfter }, 'the certificate is not due for renewal');
        return EXIT.refused;
      }
      case 'refused':
        log.error({ node: nodeId, reason: outcome.reason }, 'renewal refused');
        return EXIT.refused;
      case 'check_failed':
        log.error({ node: nodeId, reason: outcome.reason }, 'the gateway does not take the new certificate');
        return EXIT.failed;
      case 'unanswered':
        log.error({ node: nodeId, reason: outcome.reason }, 'renewal not answered');
        return EXIT.failed;
      case 'unchanged':
        log.error({ node: nodeId }, 'stopped before the new certificate was tried');
        return EXIT.failed;
    }
  } finally {
    await connection.close();
  }
}
