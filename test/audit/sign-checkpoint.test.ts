import { generateKeyPairSync } from 'node:crypto';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { recordCheckpoint } from '../../src/audit/record-checkpoint.ts';
import { signHead } from '../../src/audit/sign-checkpoint.ts';
import { readCheckpoint } from '../../src/log/checkpoint.ts';
import { readHead } from '../../src/log/postgres/reader.ts';
import { verifyLog } from '../../src/log/postgres/verify-log.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { START } from '../support/events.ts';
import { OPERATOR, requestNodes, testTransactor } from '../support/fleet.ts';
import { rewriteLog } from '../support/rewrite-log.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const keys = generateKeyPairSync('ed25519');
const otherKeys = generateKeyPairSync('ed25519');
let database: TestDatabase;
let transactor: Transactor;
let folder: { path: string } & AsyncDisposable;

beforeEach(async () => {
  [database, folder] = await Promise.all([createTestDatabase(), temporaryDirectory()]);
  transactor = testTransactor(database.url);
});

afterEach(async () => {
  await transactor.close();
  await Promise.all([database.drop(), folder[Symbol.asyncDispose]()]);
});

const sign = (key = keys.privateKey) =>
  signHead({
    db: database.pool,
    key,
    directory: folder.path,
    now: START,
    record: (signed) => recordCheckpoint(transactor, OPERATOR, signed),
  });
const headPosition = async () => (await readHead(database.pool)).position;
const file = (position: number) => join(folder.path, `${position}.checkpoint.json`);

test('a log with events: its head is signed into a file, and that is on record', async () => {
  await requestNodes(transactor, 3);
  const { hash } = await readHead(database.pool);
  const signed = await sign();
  expect(signed).toMatchObject({ ok: true, fresh: true, path: file(3), checkpoint: { epoch: 1, position: 3, hash } });
  expect(readCheckpoint(await readFile(file(3), 'utf8'), keys.publicKey)).toEqual(signed.ok && signed.checkpoint);
  expect((await stat(file(3))).mode & 0o777).toBe(0o644);
  const { rows } = await database.pool.query(`SELECT data FROM fleet.fleet_events WHERE position = 4`);
  const { key_sha256 } = signed.ok ? signed.checkpoint : { key_sha256: '' };
  expect(rows).toEqual([{ data: { position: 3, hash, key_sha256, signed_at: START } }]);
});

test('an empty log: refused', async () => {
  expect(await sign()).toMatchObject({ ok: false, code: 'log_empty' });
});

test('nothing but the checkpoint since then: the same one again, no event', async () => {
  await requestNodes(transactor, 1);
  const first = await sign();
  expect(await sign()).toEqual({ ...first, fresh: false });
  expect(await headPosition()).toBe(2);
});

test('two keys in turn: neither signs the event of the other', async () => {
  await requestNodes(transactor, 1);
  await using others = await temporaryDirectory();
  const signOther = () =>
    signHead({
      db: database.pool,
      key: otherKeys.privateKey,
      directory: others.path,
      now: START,
      record: (signed) => recordCheckpoint(transactor, OPERATOR, signed),
    });
  for (const turn of [sign, signOther, sign, signOther]) await turn();
  expect(await headPosition()).toBe(3);
});

test('cut between file and event: the next run puts it on record, once', async () => {
  await requestNodes(transactor, 1);
  const cut = signHead({
    db: database.pool,
    key: keys.privateKey,
    directory: folder.path,
    now: START - 60_000,
    record: () => Promise.reject(new Error('killed')),
  });
  await expect(cut).rejects.toThrow('killed');
  expect(await sign()).toMatchObject({ fresh: false, checkpoint: { signed_at: '2026-03-01T11:59:00.000Z' } });
  await sign();
  expect(await headPosition()).toBe(2);
});

test('the file lost: written again for the same position, no event', async () => {
  await requestNodes(transactor, 1);
  await sign();
  await rm(file(1));
  expect(await sign()).toMatchObject({ fresh: true, path: file(1) });
  expect(await headPosition()).toBe(2);
});

test('history before the last checkpoint rewritten, the chain recomputed: nothing is signed', async () => {
  await requestNodes(transactor, 3);
  await sign();
  await requestNodes(transactor, 2);
  await rewriteLog(database.pool, 2, (body) => body.replace('fsn1', 'nbg1'));
  expect((await verifyLog(database.pool)).fault).toBe(undefined);
  expect(await sign()).toMatchObject({ ok: false, code: 'log_rewritten' });
  expect(await readdir(folder.path)).toEqual(['3.checkpoint.json']);
});

test('the head itself rewritten: nothing is signed', async () => {
  await requestNodes(transactor, 3);
  await sign();
  await rewriteLog(database.pool, 3, (body) => body.replace('fsn1', 'nbg1'));
  expect(await sign()).toMatchObject({ ok: false, code: 'log_rewritten' });
});

test('the log cut off before the last checkpoint: nothing is signed', async () => {
  await requestNodes(transactor, 3);
  await sign();
  await database.pool.query('ALTER TABLE log.events DISABLE TRIGGER ALL');
  await database.pool.query('DELETE FROM log.events WHERE position > 2');
  expect(await sign()).toMatchObject({ ok: false, code: 'log_rewritten' });
});

test('a file of that name by another key: left alone, refused', async () => {
  await requestNodes(transactor, 1);
  await writeFile(file(1), 'not a checkpoint');
  expect(await sign()).toMatchObject({ ok: false, code: 'checkpoint_in_the_way' });
  expect(await readFile(file(1), 'utf8')).toBe('not a checkpoint');
  expect(await headPosition()).toBe(1);
});
