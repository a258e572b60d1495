import { createPrivateKey, randomBytes } from 'node:crypto';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { enrollByBundle } from '../../agent/bundle-file.ts';
import { checkCertificate } from '../../agent/certificate-check.ts';
import { type EnrollOutcome, enroll } from '../../agent/enroll.ts';
import { GatewayClient } from '../../agent/gateway-client.ts';
import { HttpsJson } from '../../agent/https-json.ts';
import { type Identity, IdentityStore } from '../../agent/identity-store.ts';
import { createLog } from '../../agent/log.ts';
import { type RenewOutcome, renew } from '../../agent/renew.ts';
import { diskFs, type StateFs } from '../../agent/state-fs.ts';
import { systemTime } from '../../agent/time.ts';
import type { ReenrollBundle } from '../../src/protocol/reenroll-bundle.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { type Authority, createAuthority } from './support/authority.ts';
import { type Cut, CutHere, cutFs } from './support/cut-fs.ts';
import { NODE_ID } from './support/host.ts';
import { enrollingWith, problem, renewingBy, type StubGateway, startStubGateway } from './support/stub-gateway.ts';

/** Every writing step of a renewal and of the first lease after it, in order; `ask` is the request on the wire. */
const STEPS = [
  'mkdir /pki/generations/.staging.tmp',
  'write /pki/generations/.staging.tmp/key.pem',
  'write /pki/generations/.staging.tmp/renewal.sha256',
  'sync /pki/generations/.staging.tmp/',
  'rename /pki/generations/2',
  'sync /pki/generations/',
  'sync /pki/',
  'sync /',
  'ask',
  'remove /pki/generations/2/.certificate.pem.tmp',
  'write /pki/generations/2/.certificate.pem.tmp',
  'rename /pki/generations/2/certificate.pem',
  'sync /pki/generations/2/',
  'remove /pki/generations/2/.gateway-ca.pem.tmp',
  'write /pki/generations/2/.gateway-ca.pem.tmp',
  'rename /pki/generations/2/gateway-ca.pem',
  'sync /pki/generations/2/',
  'remove /pki/.current.tmp',
  'link /pki/.current.tmp',
  'rename /pki/current',
  'sync /pki/',
  'remove /pki/generations/1',
];

/** What a bundle adds to an enrolment: the secret is staged before, and the file goes at the very end. */
const BUNDLE_FIRST_STEPS = [
  'mkdir ',
  'remove /.enrollment-secret.tmp',
  'write /.enrollment-secret.tmp',
  'rename /enrollment-secret',
  'sync /',
];
const BUNDLE_LAST_STEPS = [
  'remove /enrollment-secret',
  'sync /',
  'remove /pki/generations/1',
  'remove /bundle.json',
  'sync /',
];
const BUNDLE_STEP_COUNT = 30;

const cutsOf = (names: readonly string[]): Cut[] =>
  names.flatMap((name, index): Cut[] => [
    { step: index + 1, when: 'before' },
    { step: index + 1, when: 'after' },
    ...(name.startsWith('write') ? [{ step: index + 1, when: 'torn' } as const] : []),
  ]);

const CUTS = cutsOf(STEPS.filter((step) => step !== 'ask'));
const BUNDLE_CUTS = Array.from({ length: BUNDLE_STEP_COUNT }, (_, index): Cut[] => [
  { step: index + 1, when: 'before' },
  { step: index + 1, when: 'after' },
]).flat();

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let authority: Authority;
let gateway: StubGateway;
let listener: HttpsJson;

beforeAll(async () => {
  folder = await temporaryDirectory();
  authority = await createAuthority(folder.path);
  gateway = await startStubGateway(authority);
  listener = new HttpsJson(new URL(gateway.enrollUrl), { ca: authority.caPem }, systemTime);
  await makeTemplate();
});

afterAll(async () => {
  await listener.close();
  await gateway[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const common = (store: IdentityStore) => ({
  nodeId: NODE_ID,
  store,
  listener,
  time: systemTime,
  log: createLog('silent'),
  waitMs: 0,
  stopping: new AbortController().signal,
});

/** An enrolled host's state directory, which begins as a copy: an enrolment for each test would take longer than the test. */
async function enrolled() {
  const stateDir = `${folder.path}/${randomBytes(6).toString('hex')}`;
  await cp(`${folder.path}/template`, stateDir, { recursive: true, verbatimSymlinks: true });
  return { stateDir };
}

async function makeTemplate(): Promise<void> {
  const stateDir = `${folder.path}/template`;
  const secret = randomBytes(32).toString('hex');
  await mkdir(stateDir, { mode: 0o700 });
  await writeFile(`${stateDir}/enrollment-secret`, secret, { mode: 0o600 });
  gateway.enroll = enrollingWith(authority, secret).behaviour;
  await enroll({ ...common(new IdentityStore(diskFs, stateDir)), replace: false });
}

async function current(stateDir: string): Promise<Identity> {
  const identity = await new IdentityStore(diskFs, stateDir).current();
  if (identity === undefined) throw new Error('no identity');
  return identity;
}

async function expectWorking(stateDir: string): Promise<void> {
  const { keyPem, certificatePem, caPem } = await current(stateDir);
  const check = checkCertificate(NODE_ID, createPrivateKey(keyPem), certificatePem, caPem);
  expect(check).toMatchObject({ ok: true });
}

/** Renews with the identity in force, and then removes what came before, as the first lease does. */
async function renewOn(fs: StateFs, stateDir: string): Promise<RenewOutcome> {
  const store = new IdentityStore(fs, stateDir);
  const client = new GatewayClient(new URL(gateway.gatewayUrl), await current(stateDir), systemTime);
  try {
    const outcome = await renew({ nodeId: NODE_ID, store, client, signal: new AbortController().signal });
    await store.discardBefore((await current(stateDir)).generation);
    return outcome;
  } finally {
    await client.close();
  }
}

/** A gateway that renews the first certificate, and says of any other that it is not due. */
function renewingOnce(first: Identity) {
  const renewing = renewingBy(authority);
  gateway.renew = (received) =>
    received.certificate?.fingerprint256 === first.certificate.fingerprint256
      ? renewing.behaviour(received)
      : problem(409, 'renewal_not_due');
  return renewing;
}

describe('a renewal cut at any step', () => {
  test('uncut: the key is on disk before anything is asked, and the former generation goes last', async () => {
    const { stateDir } = await enrolled();
    const { behaviour } = renewingBy(authority);
    const trace: string[] = [];
    gateway.renew = (received) => {
      trace.push('ask');
      return behaviour(received);
    };
    expect(await renewOn(cutFs(stateDir, trace), stateDir)).toMatchObject({ kind: 'staged', generation: 2 });
    expect(trace).toEqual(STEPS);
  });

  test('the cuts are all of them', () => expect(CUTS).toHaveLength(46));

  test.each(CUTS)(
    'cut $when step $step: an identity works at once, and the next run renews with the same key',
    async (cut) => {
      const { stateDir } = await enrolled();
      const first = await current(stateDir);
      const renewing = renewingOnce(first);
      await expect(renewOn(cutFs(stateDir, [], cut), stateDir)).rejects.toThrow(CutHere);
      await expectWorking(stateDir);
      expect((await renewOn(diskFs, stateDir)).kind).toMatch(/^(staged|not_due)$/);

      await expectWorking(stateDir);
      expect(renewing.keys.size).toBe(1);
      expect((await current(stateDir)).certificate.fingerprint256).not.toBe(first.certificate.fingerprint256);
      expect(await readdir(stateDir)).toEqual(['pki']);
      expect(await readdir(`${stateDir}/pki`)).toEqual(['current', 'generations']);
      expect(await readdir(`${stateDir}/pki/generations`)).toEqual(['2']);
      expect(await readdir(`${stateDir}/pki/generations/2`)).toEqual([
        'certificate.pem',
        'gateway-ca.pem',
        'key.pem',
        'renewal.sha256',
      ]);
    },
  );
});

/** An enrolled host with a bundle, which the gateway awaits. */
async function bundled() {
  const { stateDir } = await enrolled();
  const bundle: ReenrollBundle = {
    version: 1,
    node_id: NODE_ID,
    enrollment_secret: randomBytes(32).toString('hex'),
    ca_pem: authority.caPem,
    enroll_url: gateway.enrollUrl,
    gateway_url: gateway.gatewayUrl,
    expires_at: new Date(Date.now() + 60_000).toISOString(),
  };
  const file = `${stateDir}/bundle.json`;
  await writeFile(file, JSON.stringify(bundle), { mode: 0o600 });
  const enrolling = enrollingWith(authority, bundle.enrollment_secret);
  gateway.enroll = enrolling.behaviour;
  const enrollOn = (fs: StateFs): Promise<EnrollOutcome> =>
    enrollByBundle(file, bundle, fs, common(new IdentityStore(fs, stateDir)));
  return { stateDir, file, bundle, enrolling, enrollOn };
}

describe('an enrolment by a bundle, cut at any step', () => {
  test('uncut: the secret is staged first, and the bundle goes last', async () => {
    const { stateDir, enrollOn } = await bundled();
    const trace: string[] = [];
    expect(await enrollOn(cutFs(stateDir, trace))).toMatchObject({ kind: 'enrolled' });
    expect(trace).toHaveLength(BUNDLE_STEP_COUNT);
    expect(trace.slice(0, BUNDLE_FIRST_STEPS.length)).toEqual(BUNDLE_FIRST_STEPS);
    expect(trace.slice(-BUNDLE_LAST_STEPS.length)).toEqual(BUNDLE_LAST_STEPS);
  });

  test.each(BUNDLE_CUTS)(
    'cut $when step $step: the bundle is there to run it again, which enrols with one key',
    async (cut) => {
      const { stateDir, file, bundle, enrolling, enrollOn } = await bundled();
      await expect(enrollOn(cutFs(stateDir, [], cut))).rejects.toThrow(CutHere);
      await expectWorking(stateDir);
      const isUsedUp = !(await readdir(stateDir)).includes('bundle.json');
      if (!isUsedUp) {
        expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(bundle);
        expect((await enrollOn(diskFs)).kind).toBe('enrolled');
      }

      await expectWorking(stateDir);
      expect(enrolling.keys.size).toBe(1);
      expect(await readdir(stateDir)).toEqual(['pki']);
      expect(await readdir(`${stateDir}/pki/generations`)).toEqual(['2']);
    },
  );
});
