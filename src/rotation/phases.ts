import {
  abortRotationCommand,
  beginRotationCommand,
  completeRotationCommand,
  switchIssuerCommand,
} from '../commands/ca.ts';
import type { CaState } from '../domain/ca/state.ts';
import type { EventData } from '../domain/event/catalogue.ts';
import { makeCa, makeKeyPem } from '../pki/authority.ts';
import { parseCertificate } from '../pki/bundle.ts';
import type { LiveGatewayPki } from '../read/gateway-pki.ts';
import type { HeldCa, HostFiles } from './host-files.ts';
import { done, onRecord, type RotationOutcome, refused } from './outcome.ts';
import type { RotationPorts } from './ports.ts';
import { installNext, keyMissing, pemsOf, reissue, settle } from './settle.ts';

const LOOK_MS = 250;

/**
 * Begins a rotation, or goes on with one that was cut off: a new CA is made, every live gateway trusts it, and then it issues. Waits up to
 * `waitMs` for gateways; when one does not follow, the attempt is on record and nothing has changed for agents. What the rotation before
 * left undone on this host is done first: until then the only copy of the fleet's key may lie where a new CA is staged.
 */
export async function begin(ports: RotationPorts, waitMs: number): Promise<RotationOutcome> {
  let ca = await ports.readCa();
  if (ca === undefined) return refused('ca_not_initialized');
  if (ca.rotation_id === null) {
    const refusal = await beginAnew(ports, ca);
    if (refusal !== undefined) return refusal;
    ca = (await ports.readCa()) ?? ca;
  }
  const settled = await settle(ports, ca);
  if (ca.issuing_ca_sha256 === ca.next_ca_sha256) return settled;
  if (settled.kind !== 'done') return onRecord(ports, 'begin', settled);
  return letIssue(ports, ca, waitMs);
}

/** Makes a new CA and records that it is trusted from now on. Answers why it could not. */
async function beginAnew(ports: RotationPorts, ca: CaState): Promise<RotationOutcome | undefined> {
  const { files, execute, say } = ports;
  const settled = await settle(ports, ca);
  if (settled.kind !== 'done') return onRecord(ports, 'begin', settled);
  const staged = await newCa(ports.nowMs());
  await files.stage(staged);
  const outcome = await execute(beginRotationCommand, rotationTo(staged, (await files.mainCa()) ?? '', ports.uuid()));
  if (!outcome.ok) {
    const { trusted } = (await ports.readCa()) ?? ca;
    if (!trusted.some(({ sha256 }) => sha256 === staged.sha256)) await files.removeStaged();
    return { kind: 'refused', refusal: outcome.refusal };
  }
  say(`a rotation to the CA ${staged.sha256.slice(0, 16)}… has begun`, outcome.events);
  return undefined;
}

async function letIssue(ports: RotationPorts, ca: CaState, waitMs: number): Promise<RotationOutcome> {
  const next = ca.next_ca_sha256 ?? '';
  const held = await ports.files.held(pemsOf(ca));
  const lacking = [next, ca.current_ca_sha256].find((sha256) => !held.has(sha256));
  if (lacking !== undefined) return onRecord(ports, 'issue', keyMissing(lacking));
  const trusts = ({ pki }: LiveGatewayPki) => pki?.trusted_ca_sha256s.includes(next) === true;
  if ((await gatewaysBehind(ports, trusts, waitMs, 'trust the new CA')).length === 0) {
    const installed = await installNext(ports, ca);
    if (installed.kind !== 'done') return installed;
  }
  const outcome = await ports.execute(switchIssuerCommand, { rotation_id: ca.rotation_id ?? '' });
  if (!outcome.ok) return { kind: 'refused', refusal: outcome.refusal };
  ports.say('the new CA issues from now on; agents move over as they check', outcome.events);
  // A gateway that followed at the very last moment: the decision saw it, the wait did not.
  return settle(ports, (await ports.readCa()) ?? ca);
}

/**
 * Ends a rotation: refused, with everybody it would lock out, or the old CA is gone. Finishes one that was cut off after its decision. It
 * is not done before every live gateway serves a certificate of the new CA: agents that enrol from now on believe no other.
 */
export async function complete(ports: RotationPorts, waitMs: number): Promise<RotationOutcome> {
  const ca = await ports.readCa();
  if (ca === undefined) return refused('ca_not_initialized');
  if (await hasEnded(ports, ca, 'completed')) return finishCompletion(ports, ca, waitMs);
  const next = ca.next_ca_sha256;
  if (next !== null && !(await ports.files.held(pemsOf(ca))).has(next)) {
    return onRecord(ports, 'complete', keyMissing(next));
  }
  const outcome = await ports.execute(completeRotationCommand, {});
  if (!outcome.ok) return { kind: 'refused', refusal: outcome.refusal };
  ports.say(
    `the old CA is not trusted any more, ${Number(outcome.reply['revoked'])} certificates are revoked`,
    outcome.events,
  );
  const finished = await finishCompletion(ports, (await ports.readCa()) ?? ca, waitMs);
  return finished.kind === 'done' ? done(true) : finished;
}

async function finishCompletion(ports: RotationPorts, ca: CaState, waitMs: number): Promise<RotationOutcome> {
  const settled = await settle(ports, ca);
  if (settled.kind !== 'done') return settled;
  const serves = ({ pki }: LiveGatewayPki) => pki?.serving.issuer_ca_sha256 === ca.current_ca_sha256;
  const behind = await gatewaysBehind(ports, serves, waitMs, 'serve a certificate of the new CA');
  return behind.length === 0 ? settled : refused('ca_not_served_everywhere', { gateways: behind });
}

/** Takes a rotation back. Finishes one that was cut off after its decision. */
export async function abort(ports: RotationPorts): Promise<RotationOutcome> {
  const ca = await ports.readCa();
  if (ca === undefined) return refused('ca_not_initialized');
  if (await hasEnded(ports, ca, 'aborted')) return settle(ports, ca);
  const current = ca.current_ca_sha256;
  if (ca.rotation_id !== null && !(await ports.files.held(pemsOf(ca))).has(current)) {
    return onRecord(ports, 'abort', keyMissing(current));
  }
  const outcome = await ports.execute(abortRotationCommand, {});
  if (!outcome.ok) return { kind: 'refused', refusal: outcome.refusal };
  ports.say('the rotation is taken back; the CA of before is the only one', outcome.events);
  const settled = await settle(ports, (await ports.readCa()) ?? ca);
  return settled.kind === 'done' ? done(true) : settled;
}

/** Signs this host's gateway certificate anew, by the CA that every agent trusts. */
export async function reissueGateway(ports: RotationPorts): Promise<RotationOutcome> {
  const ca = await ports.readCa();
  if (ca === undefined) return refused('ca_not_initialized');
  const current = (await ports.files.held(pemsOf(ca))).get(ca.current_ca_sha256);
  const refusal = current === undefined ? keyMissing(ca.current_ca_sha256) : await reissue(ports, current, 'reissue');
  return refusal === undefined ? done(true) : onRecord(ports, 'reissue', refusal);
}

/** The rotation that --begin would ask for, to a CA that is made for the question and kept nowhere; by then this host is where the log says. */
export async function forecastRotation(
  files: HostFiles,
  ca: CaState | undefined,
  { nowMs, rotationId }: { readonly nowMs: number; readonly rotationId: string },
): Promise<EventData<'ca_rotation_begun'>> {
  const current = ca?.current_ca_sha256 ?? '';
  const held = await files.held((ca?.trusted ?? []).map(({ pem }) => pem));
  const previous = held.has(current) ? current : ((await files.mainCa()) ?? '');
  return rotationTo(await newCa(nowMs), previous, rotationId);
}

function rotationTo(next: HeldCa, previous: string, rotationId: string): EventData<'ca_rotation_begun'> {
  return {
    rotation_id: rotationId,
    previous_ca_sha256: previous,
    ca_sha256: next.sha256,
    ca_pem: next.certPem,
    not_after: parseCertificate(next.certPem)?.validToDate.getTime() ?? 0,
  };
}

async function newCa(nowMs: number): Promise<HeldCa> {
  const keyPem = await makeKeyPem();
  const { pem, fingerprintSha256 } = await makeCa(keyPem, nowMs);
  return { sha256: fingerprintSha256, certPem: pem, keyPem };
}

/** Whether the log has ended the last rotation so already: what is left are files, or nothing. */
async function hasEnded(ports: RotationPorts, ca: CaState, as: 'completed' | 'aborted'): Promise<boolean> {
  return ca.rotation_id === null && (await ports.lastRotation())?.status === as;
}

/** Waits until every live gateway does as asked. Answers the names of those that do not. */
async function gatewaysBehind(
  ports: RotationPorts,
  follows: (gateway: LiveGatewayPki) => boolean,
  waitMs: number,
  what: string,
): Promise<readonly string[]> {
  for (let waitedMs = 0; ; waitedMs += LOOK_MS) {
    const behind = (await ports.liveGateways()).flatMap((gateway) => (follows(gateway) ? [] : [gateway.program]));
    if (behind.length === 0 || waitedMs >= waitMs) return behind;
    if (waitedMs === 0) ports.say(`waiting until all gateways ${what}: ${behind.join(', ')}`);
    await ports.pause(LOOK_MS);
  }
}
