import { initializeCaCommand } from '../commands/ca.ts';
import type { TrustedCa } from '../domain/ca/state.ts';
import { type GatewayNames, makeCa, makeKeyPem } from '../pki/authority.ts';
import { parseCertificate } from '../pki/bundle.ts';
import { sha256Hex } from '../pki/certificate.ts';
import { done, onRecord, type RotationOutcome, refused } from './outcome.ts';
import type { RotationPorts } from './ports.ts';
import { keyMissing, reissue } from './settle.ts';
import { namesIn } from './sign-gateway.ts';

/**
 * Makes the fleet's first CA known to the log: the one in this host's files, or with `names` (those of the gateway) a new one. The files
 * that are missing beside it are made then; one that is there is never overwritten. What the log knows is looked at before anything is
 * written, and what it refuses is on record. Repeating it does nothing.
 */
export async function initialize(ports: RotationPorts, names?: GatewayNames): Promise<RotationOutcome> {
  const known = await ports.readCa();
  const main = caIn(await ports.files.read(ports.files.paths.caCert));
  let ca = main ?? known?.trusted.find(({ sha256 }) => sha256 === known.current_ca_sha256);
  if (known === undefined) {
    const found = await firstCa(ports, main, names);
    if ('kind' in found) return found;
    ca = found;
  }
  if (ca === undefined) return refused('ca_not_initialized');
  const command = { ca_sha256: ca.sha256, ca_pem: ca.pem, not_after: ca.not_after };
  const outcome = await ports.execute(initializeCaCommand, command);
  if (!outcome.ok) return { kind: 'refused', refusal: outcome.refusal };
  const isNew = outcome.events.length > 0;
  if (isNew) ports.say(`the CA of the fleet is ${ca.sha256.slice(0, 16)}…`, outcome.events);
  const refusal = await supply(ports, ca, names);
  if (refusal !== undefined) return onRecord(ports, 'init', refusal);
  return done(isNew || ports.files.changed.length > 0);
}

/** The CA in this host's files, or one that is made: what a fleet can begin with. */
async function firstCa(
  ports: RotationPorts,
  main: TrustedCa | undefined,
  names: GatewayNames | undefined,
): Promise<TrustedCa | RotationOutcome> {
  const { files, nowMs } = ports;
  const { caCert, caKey } = files.paths;
  const differing = await namesDiffer(ports, names);
  if (differing !== undefined) return differing;
  if (main !== undefined) return (await files.held([])).has(main.sha256) ? main : keyMissing(main.sha256);
  if (names === undefined || (await files.read(caCert)) !== undefined)
    return refused('ca_missing', { ca_cert: caCert });
  const keyPem = (await files.read(caKey)) ?? (await makeKeyPem());
  const made = await makeCa(keyPem, nowMs());
  await files.install({ sha256: made.fingerprintSha256, certPem: made.pem, keyPem });
  return { sha256: made.fingerprintSha256, pem: made.pem, not_after: made.notAfterMs };
}

/** Makes what a gateway needs beside the CA. Answers why it cannot. */
async function supply(
  ports: RotationPorts,
  ca: TrustedCa,
  names: GatewayNames | undefined,
): Promise<RotationOutcome | undefined> {
  const { files } = ports;
  const held = (await files.held([ca.pem])).get(ca.sha256);
  if (held === undefined) return keyMissing(ca.sha256);
  await files.removeLeftovers();
  if ((await files.read(files.paths.trustBundle)) === undefined) await files.trust([ca.pem]);
  if (names === undefined) return undefined;
  if ((await files.read(files.paths.gatewayCert)) !== undefined) return namesDiffer(ports, names);
  if ((await files.read(files.paths.gatewayKey)) === undefined) await files.keepGatewayKey(await makeKeyPem());
  return reissue(ports, held, 'init', names);
}

/** A certificate for other names than were given: it would not do what was asked, and is not overwritten either. */
async function namesDiffer(
  { files }: RotationPorts,
  names: GatewayNames | undefined,
): Promise<RotationOutcome | undefined> {
  const present = await files.read(files.paths.gatewayCert);
  if (names === undefined || present === undefined) return undefined;
  const there = namesIn(present);
  const covered = new Set([...(there?.dnsNames ?? []), ...(there?.ipAddresses ?? [])]);
  const missing = [...names.dnsNames, ...names.ipAddresses].filter((name) => !covered.has(name));
  if (missing.length === 0) return undefined;
  return refused('gateway_names_differ', { gateway_cert: files.paths.gatewayCert, names: missing });
}

function caIn(pem: string | undefined): TrustedCa | undefined {
  const ca = pem === undefined ? undefined : parseCertificate(pem);
  if (pem === undefined || ca?.ca !== true) return undefined;
  return { sha256: sha256Hex(ca.raw), pem, not_after: ca.validToDate.getTime() };
}
