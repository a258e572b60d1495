import { recordGatewayCertificateCommand } from '../commands/ca.ts';
import type { CaState } from '../domain/ca/state.ts';
import type { EventData } from '../domain/event/catalogue.ts';
import type { GatewayNames } from '../pki/authority.ts';
import { issued, parseCertificate } from '../pki/bundle.ts';
import { type HeldCa, signerOf } from './host-files.ts';
import { done, type RotationOutcome, refused } from './outcome.ts';
import type { RotationPorts } from './ports.ts';
import { namesIn, signGateway } from './sign-gateway.ts';

/**
 * Brings this host's files to what the log says: the one way in which every phase ends, and all that `fleet ca sync` does. Where it was cut
 * off before, it goes on. `carried` is a folder with the key of a CA that this host does not hold yet.
 */
export async function settle(ports: RotationPorts, ca: CaState, carried?: string): Promise<RotationOutcome> {
  await ports.files.removeLeftovers();
  return ca.rotation_id === null ? settleOne(ports, ca, carried) : settleTwo(ports, ca, carried);
}

/** No rotation is under way: one CA, nothing beside it. The gateway's certificate first, while agents and gateways still trust both. */
async function settleOne(ports: RotationPorts, ca: CaState, carried?: string): Promise<RotationOutcome> {
  const { files } = ports;
  const held = (await files.held(pemsOf(ca), carried)).get(ca.current_ca_sha256);
  if (held === undefined) return keyMissing(ca.current_ca_sha256);
  const [serving, issuer] = [await files.read(files.paths.gatewayCert), held.certPem].map((pem) =>
    parseCertificate(pem ?? ''),
  );
  if (serving === undefined || issuer === undefined || !issued(issuer, serving)) {
    const stop = await reissue(ports, held, 'rotation');
    if (stop !== undefined) return stop;
  }
  await files.install(held);
  await files.trust(pemsOf(ca));
  await files.removeStaged();
  await files.removeArchive();
  return done(files.changed.length > 0);
}

/** Two CAs are trusted. The new one is only installed once the log lets it issue; before that `begin` decides when. */
async function settleTwo(ports: RotationPorts, ca: CaState, carried?: string): Promise<RotationOutcome> {
  const { files } = ports;
  await files.trust(pemsOf(ca));
  if (ca.issuing_ca_sha256 === ca.next_ca_sha256) return installNext(ports, ca, carried);
  const next = (await files.held(pemsOf(ca), carried)).get(ca.next_ca_sha256 ?? '');
  if (next === undefined) return keyMissing(ca.next_ca_sha256 ?? '');
  if ((await files.mainCa()) !== next.sha256) await files.stage(next);
  return done(files.changed.length > 0);
}

/** Archives the CA of now and puts the new one in its place. */
export async function installNext(ports: RotationPorts, ca: CaState, carried?: string): Promise<RotationOutcome> {
  const { files } = ports;
  const held = await files.held(pemsOf(ca), carried);
  const [next, current] = [held.get(ca.next_ca_sha256 ?? ''), held.get(ca.current_ca_sha256)];
  if (next === undefined) return keyMissing(ca.next_ca_sha256 ?? '');
  if (current === undefined) return keyMissing(ca.current_ca_sha256);
  await files.archive(current);
  await files.install(next);
  await files.removeStaged();
  return done(files.changed.length > 0);
}

/**
 * Signs the gateway's certificate anew, records it, and only then puts it into its file. It is for `names`, or for those in the file.
 * Answers why it cannot.
 */
export async function reissue(
  { files, nowMs, execute, say }: RotationPorts,
  ca: HeldCa,
  cause: EventData<'gateway_certificate_issued'>['cause'],
  names?: GatewayNames,
): Promise<RotationOutcome | undefined> {
  const { gatewayCert, gatewayKey } = files.paths;
  const [certPem = '', keyPem = ''] = [await files.read(gatewayCert), await files.read(gatewayKey)];
  const made = await signGateway(names ?? namesIn(certPem), keyPem, signerOf(ca), nowMs());
  if (made === undefined) {
    return refused('gateway_certificate_unreadable', { gateway_cert: gatewayCert, gateway_key: gatewayKey });
  }
  const outcome = await execute(recordGatewayCertificateCommand, {
    certificate_id: made.serialHex,
    fingerprint: made.fingerprintSha256,
    issuer_ca_sha256: ca.sha256,
    not_before: made.notBeforeMs,
    not_after: made.notAfterMs,
    certificate_pem: made.pem,
    cause,
  });
  if (!outcome.ok) return { kind: 'refused', refusal: outcome.refusal };
  await files.serve(made.pem);
  say(
    `the gateway's certificate is signed anew, good until ${new Date(made.notAfterMs).toISOString()}`,
    outcome.events,
  );
  return undefined;
}

/** The certificates of the CAs that the fleet trusts. */
export function pemsOf({ trusted }: CaState): string[] {
  return trusted.map(({ pem }) => pem);
}

/** This host lacks the key of a CA, which is nowhere else than in files. */
export const keyMissing = (sha256: string): RotationOutcome => refused('ca_key_missing', { ca_sha256: sha256 });
