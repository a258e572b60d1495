import { createPrivateKey } from 'node:crypto';
import { type GatewayNames, type MadeCertificate, makeGatewayCertificate } from '../pki/authority.ts';
import { attempt, parseCertificate } from '../pki/bundle.ts';
import type { Signer } from '../pki/signer.ts';

/** What a gateway's certificate is called where nothing else is known. */
export const GATEWAY_COMMON_NAME = 'Pushleft gateway';

/** Signs a certificate for a gateway's key. Undefined where the key cannot be read, or there is no name to sign. */
export async function signGateway(
  names: GatewayNames | undefined,
  keyPem: string,
  signer: Signer,
  nowMs: number,
): Promise<MadeCertificate | undefined> {
  if (names === undefined || attempt(() => createPrivateKey(keyPem)) === undefined) return undefined;
  if (names.dnsNames.length + names.ipAddresses.length === 0) return undefined;
  return makeGatewayCertificate(names, keyPem, signer, nowMs);
}

/** Whom a gateway's certificate is for; undefined where it cannot be read. */
export function namesIn(certPem: string): GatewayNames | undefined {
  const certificate = parseCertificate(certPem);
  if (certificate === undefined) return undefined;
  const { subject, subjectAltName = '' } = certificate;
  const names = subjectAltName.split(', ');
  const of = (prefix: string) => names.flatMap((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : []));
  const commonName = /^CN=(.*)$/m.exec(subject)?.[1] ?? GATEWAY_COMMON_NAME;
  return { commonName, dnsNames: of('DNS:'), ipAddresses: of('IP Address:') };
}
