import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PkiPaths } from '../../src/pki/files.ts';
import { issueServer, newCa, newKey, pemOf, type TestCa } from './support.ts';

/** Paths of a set in a folder. */
export function pathsIn(folder: string): PkiPaths {
  return {
    caCert: join(folder, 'ca.pem'),
    caKey: join(folder, 'ca.key'),
    trustBundle: join(folder, 'bundle.pem'),
    gatewayCert: join(folder, 'gateway.pem'),
    gatewayKey: join(folder, 'gateway.key'),
  };
}

/** Writes a good set: a new CA (or `ca`) that issues and is trusted together with `trusted`, and a gateway that it has certified. */
export async function writeSet(
  paths: PkiPaths,
  { ca, trusted = [], gatewayFromMs }: { ca?: TestCa; trusted?: readonly TestCa[]; gatewayFromMs?: number } = {},
): Promise<TestCa> {
  const issuer = ca ?? (await newCa());
  const gatewayKey = newKey();
  writeFileSync(paths.caCert, issuer.certPem);
  writeFileSync(paths.caKey, issuer.keyPem, { mode: 0o600 });
  writeFileSync(paths.trustBundle, [issuer, ...trusted].map(({ certPem }) => certPem).join(''));
  writeFileSync(paths.gatewayCert, (await issueServer(issuer, gatewayKey, gatewayFromMs)).pem);
  writeFileSync(paths.gatewayKey, pemOf(gatewayKey), { mode: 0o600 });
  return issuer;
}
