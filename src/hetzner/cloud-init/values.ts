import { X509Certificate } from 'node:crypto';
import * as v from 'valibot';
import { uuid } from '../../domain/fields.ts';

/** Characters that mean nothing to a shell, to systemd's EnvironmentFile or to curl's globbing. No user, query, fragment or `..`. */
const HTTPS_URL =
  /^https:\/\/[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[1-9]\d{0,4})?(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*\/?$/;
const PEM_CERTIFICATES =
  /^(?:-----BEGIN CERTIFICATE-----\n(?:[A-Za-z0-9+/]{1,76}={0,2}\n)+-----END CERTIFICATE-----\n)+$/;

const httpsUrl = v.pipe(
  v.string(),
  v.maxLength(512),
  v.regex(HTTPS_URL, 'must be an https URL of plain characters'),
  v.check((url) => URL.canParse(url), 'must be an https URL of plain characters'),
);

/** Everything that is rendered into user-data. Each value is of a grammar that cannot leave its place in the script. */
export const CloudInitValues = v.strictObject({
  nodeId: uuid,
  enrollmentSecret: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/, 'must be 64 hex digits')),
  gatewayUrl: httpsUrl,
  enrollUrl: httpsUrl,
  releaseUrl: httpsUrl,
  agentVersion: v.pipe(
    v.string(),
    v.maxLength(64),
    v.regex(
      /^\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z]+(?:[.-][0-9A-Za-z]+)*)?$/,
      'must be a version such as 1.2.3 or 1.2.3-rc.1',
    ),
  ),
  releasePublicKey: v.pipe(
    v.string(),
    v.regex(/^[A-Za-z0-9+/]{43}=$/, 'must be the base64 of a raw Ed25519 public key (32 bytes)'),
    v.check((key) => Buffer.from(key, 'base64').toString('base64') === key, 'must be canonical base64'),
  ),
  gatewayCaPem: v.pipe(
    v.string(),
    v.regex(PEM_CERTIFICATES, 'must be CERTIFICATE blocks in PEM and nothing else'),
    v.check((pem) => pemBlocks(pem).every(isCaCertificate), 'must hold CA certificates only'),
  ),
});
/** What a node's user-data is rendered from. URLs https; the key the base64 of 32 raw bytes; the CA one or more PEM blocks. */
export type CloudInitValues = v.InferOutput<typeof CloudInitValues>;

function pemBlocks(pem: string): readonly string[] {
  return pem.split(/(?<=-----END CERTIFICATE-----\n)/);
}

function isCaCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca;
  } catch {
    return false;
  }
}
