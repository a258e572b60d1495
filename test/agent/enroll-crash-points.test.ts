import { createPrivateKey, randomBytes } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkCertificate } from '../../agent/certificate-check.ts';
import { type EnrollOutcome, enroll } from '../../agent/enroll.ts';
import { HttpsJson } from '../../agent/https-json.ts';
import { IdentityStore } from '../../agent/identity-store.ts';
import { createLog } from '../../agent/log.ts';
import { diskFs, type StateFs } from '../../agent/state-fs.ts';
import { systemTime } from '../../agent/time.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { type Authority, createAuthority } from './support/authority.ts';
import { type Cut, CutHere, cutFs } from './support/cut-fs.ts';
import { NODE_ID } from './support/host.ts';
import { enrollingWith, type StubGateway, startStubGateway } from './support/stub-gateway.ts';

/** Every writing step of an enrolment, in order; `ask` is the request on the wire. */
const STEPS = [
  'mkdir /pki/generations/.staging.tmp',
  'write /pki/generations/.staging.tmp/key.pem',
  'write /pki/generations/.staging.tmp/enrollment.sha256',
  'sync /pki/generations/.staging.tmp/',
  'rename /pki/generations/1',
  'sync /pki/generations/',
  'sync /pki/',
  'sync /',
  'ask',
  'remove /pki/generations/1/.certificate.pem.tmp',
  'write /pki/generations/1/.certificate.pem.tmp',
  'rename /pki/generations/1/certificate.pem',
  'sync /pki/generations/1/',
  'remove /pki/generations/1/.gateway-ca.pem.tmp',
  'write /pki/generations/1/.gateway-ca.pem.tmp',
  'rename /pki/generations/1/gateway-ca.pem',
  'sync /pki/generations/1/',
  'remove /pki/.current.tmp',
  'link /pki/.current.tmp',
  'rename /pki/current',
  'sync /pki/',
  'remove /enrollment-secret',
  'sync /',
];

const DISK_STEPS = STEPS.filter((step) => step !== 'ask');
const CUTS: Cut[] = DISK_STEPS.flatMap((name, index): Cut[] => [
  { step: index + 1, when: 'before' },
  { step: index + 1, when: 'after' },
  ...(name.startsWith('write') ? [{ step: index + 1, when: 'torn' } as const] : []),
]);

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let authority: Authority;
let gateway: StubGateway;
let listener: HttpsJson;

beforeAll(async () => {
  folder = await temporaryDirectory();
  authority = await createAuthority(folder.path);
  gateway = await startStubGateway(authority);
  listener = new HttpsJson(new URL(gateway.enrollUrl), { ca: authority.caPem }, systemTime);
});

afterAll(async () => {
  await listener.close();
  await gateway[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** A fresh state directory whose secret the gateway awaits. */
async function awaited() {
  const stateDir = `${folder.path}/${randomBytes(6).toString('hex')}`;
  const secret = randomBytes(32).toString('hex');
  await mkdir(stateDir, { mode: 0o700 });
  await writeFile(`${stateDir}/enrollment-secret`, secret, { mode: 0o600 });
  const enrolling = enrollingWith(authority, secret);
  gateway.enroll = enrolling.behaviour;
  return { stateDir, enrolling };
}

function enrollOn(fs: StateFs, stateDir: string): Promise<EnrollOutcome> {
  return enroll({
    nodeId: NODE_ID,
    store: new IdentityStore(fs, stateDir),
    listener,
    time: systemTime,
    log: createLog('silent'),
    waitMs: 0,
    replace: false,
    stopping: new AbortController().signal,
  });
}

describe('an enrolment cut at any step', () => {
  test('uncut: the key is on disk before anything is asked, and the link is switched before the secret goes', async () => {
    const { stateDir, enrolling } = await awaited();
    const trace: string[] = [];
    gateway.enroll = (received) => {
      trace.push('ask');
      return enrolling.behaviour(received);
    };
    expect(await enrollOn(cutFs(stateDir, trace), stateDir)).toMatchObject({ kind: 'enrolled' });
    expect(trace).toEqual(STEPS);
  });

  test('the cuts are all of them', () => expect(CUTS).toHaveLength(48));

  test.each(CUTS)('cut $when step $step: the next run enrols with one key and leaves nothing else', async (cut) => {
    const { stateDir, enrolling } = await awaited();
    await expect(enrollOn(cutFs(stateDir, [], cut), stateDir)).rejects.toThrow(CutHere);
    expect((await enrollOn(diskFs, stateDir)).kind).toMatch(/^(already_)?enrolled$/);

    expect(enrolling.keys.size).toBe(1);
    expect(await readdir(stateDir)).toEqual(['pki']);
    expect(await readdir(`${stateDir}/pki`)).toEqual(['current', 'generations']);
    expect(await readdir(`${stateDir}/pki/generations`)).toHaveLength(1);
    expect(await readdir(`${stateDir}/pki/current/`)).toEqual([
      'certificate.pem',
      'enrollment.sha256',
      'gateway-ca.pem',
      'key.pem',
    ]);
    const identity = await new IdentityStore(diskFs, stateDir).current();
    if (identity === undefined) throw new Error('no identity');
    const key = createPrivateKey(identity.keyPem);
    expect(checkCertificate(NODE_ID, key, identity.certificatePem, identity.caPem)).toMatchObject({ ok: true });
  });
});
