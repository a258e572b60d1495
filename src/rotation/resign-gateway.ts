import { createPrivateKey, type X509Certificate } from 'node:crypto';
import { type MadeCertificate, makeGatewayCertificate } from '../pki/authority.ts';
import { attempt, parseCertificate } from '../pki/bundle.ts';
import type { Signer } from '../pki/signer.ts';

/**
 * Signs a gateway's certificate anew: the names of the present one, the key that it has. Undefined where the present certificate or the key
 * cannot be read, or names nothing.
 */
export async function resignGateway(
  present: { readonly certPem: string; readonly keyPem: string },
  signer: Signer,
  nowMs: number,
): Promise<MadeCertificate | undefined> {
  const certificate = parseCertificate(present.certPem);
  if (certificate === undefined || attempt(() => createPrivateKey(present.keyPem)) === undefined) return undefined;
  const names = namesOf(certificate);
  if (names.dnsNames.length + names.ipAddresses.length === 0) return undefined;
  return makeGatewayCertificate(names, present.keyPem, signer, nowMs);
}

function namesOf({ subject, subjectAltName = '' }: X509Certificate) {
  const names = subjectAltName.split(', ');
  const of = (prefix: string) => names.flatMap((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : []));
  const commonName = /^CN=(.*)$/m.exec(subject)?.[1] ?? 'Pushleft gateway';
  return { commonName, dnsNames: of('DNS:'), ipAddresses: of('IP Address:') };
}
