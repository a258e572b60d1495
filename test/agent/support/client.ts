import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { createCsr } from '../../../agent/csr.ts';
import { GatewayClient } from '../../../agent/gateway-client.ts';
import type { Identity } from '../../../agent/identity-store.ts';
import { systemTime, type Time } from '../../../agent/time.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { type Authority, createAuthority } from './authority.ts';
import { NODE_ID } from './host.ts';
import { type StubGateway, startStubGateway } from './stub-gateway.ts';

/** A gateway, and a client of it with a certificate of its CA, in this process. */
export interface Connected extends AsyncDisposable {
  readonly directory: string;
  readonly authority: Authority;
  readonly gateway: StubGateway;
  readonly client: GatewayClient;
}

/** Connects over real mTLS. */
export async function connect(time: Time = systemTime): Promise<Connected> {
  const folder = await temporaryDirectory();
  const authority = await createAuthority(folder.path);
  const gateway = await startStubGateway(authority);
  const client = new GatewayClient(new URL(gateway.gatewayUrl), await identityBy(authority), time);
  return {
    directory: folder.path,
    authority,
    gateway,
    client,
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await gateway[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function identityBy(authority: Authority): Promise<Identity> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certificatePem = await authority.issue(createCsr(NODE_ID, privateKey));
  return {
    generation: 1,
    keyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificatePem,
    caPem: authority.caPem,
    certificate: new X509Certificate(certificatePem),
  };
}

/** Real time whose pauses are written down instead of waited for. */
export function hurriedTime(pauses: number[] = []): Time {
  return {
    ...systemTime,
    pause: async (ms, signal) => {
      pauses.push(ms);
      await systemTime.pause(1, signal);
    },
  };
}
