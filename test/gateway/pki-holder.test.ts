import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PkiHolder } from '../../src/gateway/pki-holder.ts';
import { LifetimeWatch } from '../../src/gateway/pki-lifetime.ts';
import { type PkiPaths, previousPath } from '../../src/pki/files.ts';
import { pathsIn, writeSet } from '../pki/pki-folder.ts';
import { issueServer, newCa, newKey, pemOf, type TestCa, temporaryFolder } from '../pki/support.ts';
import { type ManualTicker, manualTicker } from './support/manual-ticker.ts';

const HOUR_MS = 3_600_000;
const T0 = Math.floor(Date.now() / 1_000) * 1_000;

let folder: ReturnType<typeof temporaryFolder>;
let paths: PkiPaths;
let ca: TestCa;
let holder: PkiHolder;
let ticks: ManualTicker;
let lines: { level: number; msg: string }[];
let nowMs: number;
beforeEach(async () => {
  folder = temporaryFolder();
  paths = pathsIn(folder.path);
  ca = await writeSet(paths, { gatewayFromMs: T0 });
  ticks = manualTicker();
  lines = [];
  nowMs = T0;
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  holder = await PkiHolder.open(paths, { log, now: () => nowMs, ticker: ticks.ticker });
});
afterEach(() => {
  holder[Symbol.dispose]();
  folder[Symbol.dispose]();
});

const levels = () => lines.map(({ level }) => level);
const [INFO, WARN, ERROR] = [30, 40, 50];

test('the same contents written again: the same set, not a word', async () => {
  const { current, loadedAtMs } = holder;
  writeFileSync(paths.caCert, readFileSync(paths.caCert));
  nowMs += 2_000;
  await ticks.tick();
  expect([holder.current === current, holder.loadedAtMs, lines]).toEqual([true, loadedAtMs, []]);
});

test('key written, a tick, certificate written, a tick: the last good set between them, then the new one', async () => {
  const before = holder.current;
  const key = newKey();
  writeFileSync(paths.gatewayKey, pemOf(key));
  nowMs += 2_000;
  await ticks.tick();
  expect([holder.current === before, holder.error]).toEqual([
    true,
    { code: 'pki_gateway_key_mismatch', message: expect.stringContaining(paths.gatewayKey), sinceMs: T0 + 2_000 },
  ]);
  const certificate = await issueServer(ca, key, T0);
  writeFileSync(paths.gatewayCert, certificate.pem);
  nowMs += 2_000;
  await ticks.tick();
  expect([holder.current.serving.fingerprintSha256, holder.error, holder.loadedAtMs]).toEqual([
    certificate.fingerprintSha256,
    null,
    T0 + 4_000,
  ]);
  expect(levels()).toEqual([ERROR, INFO]);
});

test('a problem that stays: logged once and shown since when; another one: logged again', async () => {
  const good = readFileSync(paths.trustBundle, 'utf8');
  writeFileSync(paths.trustBundle, good.slice(0, 100));
  await ticks.tick();
  nowMs += 2_000;
  await ticks.tick();
  writeFileSync(paths.trustBundle, good.slice(0, 90));
  await ticks.tick();
  expect([levels(), holder.error?.sinceMs]).toEqual([[ERROR], T0]);
  chmodSync(paths.caKey, 0o640);
  await ticks.tick();
  expect([levels(), holder.error?.code, holder.error?.sinceMs]).toEqual([[ERROR, ERROR], 'pki_key_permissions', nowMs]);
});

test('put back as it was: no error any more', async () => {
  const good = readFileSync(paths.trustBundle);
  writeFileSync(paths.trustBundle, '');
  await ticks.tick();
  writeFileSync(paths.trustBundle, good);
  await ticks.tick();
  expect([holder.error, levels()]).toEqual([null, [ERROR, INFO]]);
});

test('no line of the log holds a line of a key', async () => {
  writeFileSync(paths.gatewayKey, pemOf(newKey()).slice(0, 150));
  await ticks.tick();
  await writeSet(paths);
  await ticks.tick();
  const keys = [paths.caKey, paths.gatewayKey].flatMap((path) => readFileSync(path, 'utf8').split('\n'));
  const secrets = [...keys, ca.keyPem.split('\n')[1] ?? ''].filter((line) => line !== '' && !line.includes('-----'));
  expect(secrets.length).toBeGreaterThan(4);
  expect(secrets.filter((secret) => JSON.stringify(lines).includes(secret))).toEqual([]);
});

test('asked while it looks: looks again, once for all who ask, and sees what was written meanwhile', async () => {
  const first = holder.reload();
  await Promise.resolve(); // the look begins
  await Promise.resolve();
  const next = await writeSet(paths);
  const [second, third] = [holder.reload(), holder.reload()];
  expect([second === third, second === first]).toEqual([true, false]);
  await second;
  expect(holder.current.signer.caSha256).toBe(next.signer.caSha256);
});

test('followers get each new set, and none that is refused', async () => {
  const followed: string[] = [];
  holder.follow((set) => followed.push(set.signer.caSha256));
  writeFileSync(paths.caCert, '');
  await ticks.tick();
  const next = await writeSet(paths);
  await ticks.tick();
  await ticks.tick();
  expect(followed).toEqual([next.signer.caSha256]);
});

test('a follower that fails once: said once, and tried again at each tick until it succeeds', async () => {
  const followed: string[] = [];
  let failures = 2;
  holder.follow((set) => {
    if (failures > 0) {
      failures -= 1;
      throw new Error('no file descriptor is left');
    }
    followed.push(set.signer.caSha256);
  });
  const next = await writeSet(paths);
  await ticks.tick();
  await ticks.tick();
  expect([holder.error?.code, levels()]).toEqual(['pki_reload_failed', [ERROR, ERROR]]);
  await ticks.tick();
  expect([holder.error, followed, holder.current.signer.caSha256]).toEqual([
    null,
    [next.signer.caSha256],
    next.signer.caSha256,
  ]);
});

test('a previous CA that is archived and trusted: both sign, by their fingerprints', async () => {
  const next = await writeSet(paths, { trusted: [ca] });
  writeFileSync(previousPath(paths.caCert), ca.certPem);
  writeFileSync(previousPath(paths.caKey), ca.keyPem, { mode: 0o600 });
  await ticks.tick();
  expect([holder.current.previousSigner?.caSha256, [...holder.current.signers.keys()]]).toEqual([
    ca.signer.caSha256,
    [next.signer.caSha256, ca.signer.caSha256],
  ]);
});

test('half an archive, then the other half: no error, then it signs', async () => {
  await writeSet(paths, { trusted: [ca] });
  writeFileSync(previousPath(paths.caCert), ca.certPem);
  await ticks.tick();
  expect([holder.current.previousSigner, holder.error]).toEqual([undefined, null]);
  writeFileSync(previousPath(paths.caKey), ca.keyPem, { mode: 0o600 });
  await ticks.tick();
  expect(holder.current.previousSigner?.caSha256).toBe(ca.signer.caSha256);
});

test('the serving certificate ages: one line a level, and the set stays beyond its end', async () => {
  const { current } = holder;
  for (const leftMs of [HOUR_MS, HOUR_MS / 3 + 60_000, HOUR_MS / 3 - 60_000, 60_000, 0, -HOUR_MS]) {
    nowMs = T0 + HOUR_MS - leftMs;
    await ticks.tick();
  }
  expect([holder.current === current, holder.error, levels()]).toEqual([true, null, [ERROR, ERROR]]);
  await writeSet(paths, { ca, gatewayFromMs: nowMs });
  await ticks.tick();
  expect([holder.current.serving.notAfterMs, levels().slice(2)]).toEqual([nowMs + HOUR_MS, [INFO, INFO]]);
});

test('a long-lived serving certificate: warned of before it is an error', () => {
  const long = { notBeforeMs: T0, notAfterMs: T0 + 90 * 24 * HOUR_MS };
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const watch = new LifetimeWatch(log);
  for (const day of [0, 59, 61, 62, 82, 84, 90, 91]) {
    watch.look({ ...holder.current.serving, ...long }, T0 + day * 24 * HOUR_MS);
  }
  expect(levels()).toEqual([WARN, ERROR, ERROR]);
});

test('the trust changes after the serving certificate ran out: taken, since refusing would help nobody', async () => {
  nowMs = T0 + 2 * HOUR_MS;
  const other = await newCa();
  writeFileSync(paths.trustBundle, ca.certPem + other.certPem);
  await ticks.tick();
  expect([holder.error, holder.current.trustedCaSha256s]).toEqual([null, [ca.signer.caSha256, other.signer.caSha256]]);
});

test('a new certificate that has run out already: the last good set', async () => {
  const { serving } = holder.current;
  await writeSet(paths, { ca, gatewayFromMs: T0 - 2 * HOUR_MS });
  await ticks.tick();
  expect([holder.error?.code, holder.current.serving]).toEqual(['pki_certificate_expired', serving]);
});

test('a new certificate whose time comes: taken then, without another change', async () => {
  await writeSet(paths, { ca, gatewayFromMs: T0 + HOUR_MS });
  await ticks.tick();
  expect(holder.error?.code).toBe('pki_certificate_not_yet_valid');
  nowMs = T0 + HOUR_MS;
  await ticks.tick();
  expect([holder.error, holder.current.serving.notAfterMs]).toEqual([null, T0 + 2 * HOUR_MS]);
});
