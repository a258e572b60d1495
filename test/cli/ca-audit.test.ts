import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { checkpointText, signCheckpoint } from '../../src/log/checkpoint.ts';
import { unseal } from '../../src/log/codec.ts';
import { GENESIS } from '../../src/log/prove.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { START } from '../support/events.ts';
import { editEvent } from '../support/rewrite-log.ts';
import { exported, ROTATIONS, rotationHistory, sealed } from '../support/rotation-history.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { plainLines, runCli } from './support/run-cli.ts';

// Each test starts processes, which wait for their turn on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

const rows = sealed(rotationHistory);
const golden = (name: string) => join(import.meta.dirname, '../golden/audit', name);
let database: TestDatabase;
let folder: { path: string } & AsyncDisposable;

beforeAll(async () => {
  [database, folder] = await Promise.all([createTestDatabase(), temporaryDirectory()]);
  for (const { position, stream, revision, hash, body } of rows) {
    const { type, at } = unseal(position, body);
    await database.pool.query(
      `INSERT INTO log.events (position, stream, revision, type, at, hash, body) VALUES ($1, $2, $3, $4, $5, decode($6, 'hex'), $7)`,
      [position, stream, revision, type, at, hash, body],
    );
  }
  await writeFile(join(folder.path, 'history.jsonl'), exported(rows));
});

afterAll(async () => {
  await Promise.all([database.drop(), folder[Symbol.asyncDispose]()]);
});

const fromDatabase = (...args: string[]) =>
  runCli(['fleet', 'ca', 'audit', ...args], { env: { DATABASE_URL: database.url } });
const fromFile = (...args: string[]) =>
  runCli(['fleet', 'ca', 'audit', '--from', 'history.jsonl', ...args], { cwd: folder.path });

describe('a history with an aborted attempt, a refused complete and a late node', () => {
  test('from the database, as text: the golden report', async () => {
    const run = await fromDatabase('--all', '--verify');
    expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
    await expect(run.stdout).toMatchFileSnapshot(golden('rotations.txt'));
  });

  test('from an exported file, as Markdown: the golden report', async () => {
    const run = await fromFile('--all', '--verify', '--markdown');
    expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
    await expect(run.stdout).toMatchFileSnapshot(golden('rotations.md'));
  });

  test('from an exported file, as JSON: the golden report', async () => {
    const run = await fromFile('--all', '--verify', '--json');
    expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
    await expect(run.stdout).toMatchFileSnapshot(golden('rotations.json'));
  });

  test('against a signed checkpoint: says that it agrees', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const { position, hash } = rows.at(-1) ?? GENESIS;
    const checkpoint = signCheckpoint({ epoch: 1, position, hash }, START, privateKey);
    await writeFile(join(folder.path, 'head.json'), checkpointText(checkpoint));
    await writeFile(join(folder.path, 'key.pem'), publicKey.export({ type: 'spki', format: 'pem' }));
    const run = await fromFile('--checkpoint', 'head.json', '--public-key', 'key.pem');
    expect({ code: run.code, lines: plainLines(run).slice(-2) }).toEqual({
      code: 0,
      lines: [
        `the checkpoint at position ${position}, signed 2026-03-01T12:00:00.000Z by key ${checkpoint.key_sha256.slice(0, 16)}, agrees`,
        `${position} events are as they were written; hash at position ${position}: ${hash}`,
      ],
    });
  });

  test('no rotation chosen: the last one; chosen by the beginning of its id: that one', async () => {
    const ids = async (...args: string[]) =>
      JSON.parse((await fromFile('--json', ...args)).stdout).rotations.map(
        ({ rotation_id }: { rotation_id: string }) => rotation_id,
      );
    expect(await Promise.all([ids(), ids('aaaa')])).toEqual([[ROTATIONS.completed], [ROTATIONS.aborted]]);
  });

  test('one that the log does not tell of: refused', async () => {
    expect(await fromFile('ffff')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the log tells of no such rotation'),
    });
  });
});

test('an event edited in the database: exit 1, named first', async () => {
  const at = rows.find(({ body }) => body.includes('"ca_rotation_begun"'))?.position ?? 0;
  await editEvent(database.pool, at, (body) => body.replace('ada_login', 'bob_login'));
  const run = await fromDatabase('--verify');
  expect({ code: run.code, lines: plainLines(run) }).toEqual({
    code: 1,
    lines: [
      `position ${at}: hash mismatch`,
      'The log does not hold: what follows was told by events before that, and is not proved.',
      '',
      'the log tells of no rotation of the CA',
      expect.stringMatching(`^${at - 1} events are as they were written; hash at position ${at - 1}: `),
    ],
  });
});
