import { generateKeyPairSync } from 'node:crypto';
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { checkpointPass } from '../../src/scheduler/checkpoints.ts';
import { readSchedulerConfig } from '../../src/scheduler/config.ts';
import { startScheduler } from '../../src/scheduler/scheduler.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { requestNodes, testTransactor } from '../support/fleet.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';

const HOUR = 3_600_000;
let database: TestDatabase;
let transactor: Transactor;
let folder: { path: string } & AsyncDisposable;
let logged: unknown[];
let now: number;

const keyFile = () => join(folder.path, 'audit.pem');
const directory = () => join(folder.path, 'checkpoints');

beforeAll(async () => {
  [database, folder] = await Promise.all([createTestDatabase(), temporaryDirectory()]);
  transactor = testTransactor(database.url);
  const { privateKey } = generateKeyPairSync('ed25519');
  await writeFile(keyFile(), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
});

beforeEach(() => {
  logged = [];
  now = 0;
});

afterAll(async () => {
  await transactor.close();
  await Promise.all([database.drop(), folder[Symbol.asyncDispose]()]);
});

/** A pass, and what it logs when it is due again after `ms`. */
function pass() {
  const keep = (details: object, message: string) => void logged.push([message, details]);
  const checkpoints = checkpointPass(
    { keyFile: keyFile(), directory: directory(), intervalMs: HOUR },
    {
      pool: database.pool,
      transactor,
      actor: { kind: 'scheduler', id: 'test' },
      log: { info: keep, error: keep },
      now: () => now,
    },
  );
  return async (ms: number) => {
    now += ms;
    checkpoints.begin();
    await checkpoints.ended();
    return logged.splice(0);
  };
}

test('the folder is not there: logged, and tried again after a minute, without an end of its own', async () => {
  await requestNodes(transactor, 2);
  const after = pass();
  const failure = ['no checkpoint was signed', { err: expect.objectContaining({ code: 'ENOENT' }) }];
  expect(await after(0)).toEqual([failure]);
  expect(await after(59_000)).toEqual([]);
  expect(await after(1_000)).toEqual([failure]);
});

test('events: signed at once, then once an interval when there are more', async () => {
  await mkdir(directory());
  const after = pass();
  expect(await after(0)).toEqual([['a checkpoint was signed', { position: 2 }]]);
  await requestNodes(transactor, 1);
  expect(await after(HOUR - 1)).toEqual([]);
  expect(await after(1)).toEqual([['a checkpoint was signed', { position: 4 }]]);
  expect(await after(HOUR)).toEqual([]);
  expect((await readdir(directory())).toSorted()).toEqual(['2.checkpoint.json', '4.checkpoint.json']);
});

test('a scheduler with these settings: signs while it leads', async () => {
  await using other = await temporaryDirectory();
  const scheduler = startScheduler(
    {
      databaseUrl: database.url,
      programVersion: '0.0.0',
      intervalMs: 50,
      leaseMs: 60_000,
      silence: { unhealthyAfterMs: 90_000, lostAfterMs: 300_000 },
      checkpoints: { keyFile: keyFile(), directory: other.path, intervalMs: HOUR },
    },
    pino({ level: 'silent' }),
  );
  try {
    await waitFor(async () => (await readdir(other.path)).some((name) => name.endsWith('.checkpoint.json')), {
      what: 'a checkpoint is signed',
    });
  } finally {
    await scheduler.close();
  }
});

test('a key that others may read: logged without its content', async () => {
  await chmod(keyFile(), 0o644);
  expect(await pass()(0)).toEqual([
    ['no checkpoint was signed', { reason: expect.stringContaining(`run: chmod 0600 ${keyFile()}`) }],
  ]);
});

test.for([
  ['neither key nor folder', {}, undefined],
  [
    'both',
    { PUSHLEFT_CHECKPOINT_KEY_FILE: '/k', PUSHLEFT_CHECKPOINT_DIR: '/d' },
    { keyFile: '/k', directory: '/d', intervalMs: HOUR },
  ],
  [
    'a key alone',
    { PUSHLEFT_CHECKPOINT_KEY_FILE: '/k', PUSHLEFT_CHECKPOINT_DIR: '' },
    'PUSHLEFT_CHECKPOINT_DIR: is not set, but PUSHLEFT_CHECKPOINT_KEY_FILE is',
  ],
] as const)('settings, %s: %o', ([, env, expected]) => {
  const read = readSchedulerConfig({ DATABASE_URL: 'postgres://x', ...env }, '0.0.0');
  expect(read.ok ? read.config.checkpoints : read.message).toEqual(expected);
});
