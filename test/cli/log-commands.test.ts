import { execFile } from 'node:child_process';
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readHead } from '../../src/log/postgres/reader.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { requestNodes, testTransactor } from '../support/fleet.ts';
import { rewriteLog } from '../support/rewrite-log.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { plainLines, runCli } from './support/run-cli.ts';

const run = promisify(execFile);
const EVENTS = 6;
// Each test starts processes, which wait for their turn on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let database: TestDatabase;
let folder: { path: string } & AsyncDisposable;
let head: { position: number; hash: string };

const path = (name: string) => join(folder.path, name);
/** With the database. */
const cli = (...args: string[]) => runCli(args, { env: { DATABASE_URL: database.url }, cwd: folder.path });
/** As on an auditor's machine, which has no database. */
const audit = (args: string[], stdin = '') => runCli(args, { cwd: folder.path, stdin });

beforeAll(async () => {
  [database, folder] = await Promise.all([createTestDatabase(), temporaryDirectory()]);
  const transactor = testTransactor(database.url);
  await requestNodes(transactor, EVENTS);
  await transactor.close();
  head = await readHead(database.pool);
  for (const name of ['audit', 'other']) {
    await run('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', path(`${name}.pem`)]);
    await run('openssl', ['pkey', '-in', path(`${name}.pem`), '-pubout', '-out', path(`${name}.pub.pem`)]);
  }
  expect((await cli('log', 'export', '-o', 'all.jsonl')).code).toBe(0);
});

afterAll(async () => {
  await Promise.all([database.drop(), folder[Symbol.asyncDispose]()]);
});

describe('log export and log verify FILE', () => {
  test('the whole log: only its owner may read the file, and it verifies without a database', async () => {
    expect((await stat(path('all.jsonl'))).mode & 0o777).toBe(0o600);
    const ended = await audit(['log', 'verify', 'all.jsonl']);
    expect({ ...ended, stdout: plainLines(ended) }).toEqual({
      code: 0,
      stdout: [`6 events are as they were written; hash at position 6: ${head.hash}`],
      stderr: '',
    });
  });

  test('a part through pipes: says that what came before is not proved', async () => {
    const part = await cli('log', 'export', '--from', '3', '--to', '5');
    expect(
      part.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).position),
    ).toEqual([3, 4, 5]);
    expect(part.stderr).toMatch(/^3 events from position 3; hash at position 5: [0-9a-f]{64}\n$/);
    const ended = await audit(['log', 'verify', '-'], part.stdout);
    expect({ code: ended.code, lines: plainLines(ended) }).toEqual({
      code: 0,
      lines: [
        'the file begins at position 3, not at the first event: what came before is not proved',
        expect.stringMatching(/^3 events are as they were written; hash at position 5: /),
      ],
    });
  });

  test('a file of that name: not replaced, unless --force says so', async () => {
    await writeFile(path('there.jsonl'), 'precious');
    const refused = await cli('log', 'export', '--output', 'there.jsonl');
    expect({ code: refused.code, stderr: refused.stderr }).toEqual({
      code: 2,
      stderr: 'pushleft-controller: there.jsonl is there already\n  give another name, or --force\n',
    });
    expect(await readFile(path('there.jsonl'), 'utf8')).toBe('precious');
    const forced = await cli('log', 'export', '--output', 'there.jsonl', '--force', '--json');
    expect(JSON.parse(forced.stdout)).toEqual({ output: 'there.jsonl', from: 1, to: 6, events: 6, hash: head.hash });
    expect(await readFile(path('there.jsonl'), 'utf8')).toBe(await readFile(path('all.jsonl'), 'utf8'));
  });

  test('beyond the end of the log: refused', async () => {
    const ended = await cli('log', 'export', '--to', '7');
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({
      code: 1,
      stderr: 'pushleft-controller: the log ends at position 6\n',
    });
  });

  test('an event edited in the file: named by position and line', async () => {
    const part = await cli('log', 'export', '--from', '3');
    const lines = part.stdout.split('\n');
    const ended = await audit(
      ['log', 'verify', '-'],
      lines.map((line, i) => (i === 1 ? line.replace('fsn1', 'nbg1') : line)).join('\n'),
    );
    expect({ code: ended.code, first: plainLines(ended)[0] }).toEqual({
      code: 1,
      first: 'position 4: hash mismatch (line 2)',
    });
  });

  test('a line cut short: named', async () => {
    const text = await readFile(path('all.jsonl'), 'utf8');
    const ended = await audit(['log', 'verify', '-'], text.slice(0, -20));
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({
      code: 1,
      stderr: 'pushleft-controller: - line 6: is no event of an exported log\n',
    });
  });

  test('an empty file: proves nothing', async () => {
    expect(await audit(['log', 'verify', '-'])).toMatchObject({
      code: 1,
      stderr: 'pushleft-controller: - holds no event\n',
    });
  });
});

describe('log checkpoint', () => {
  test('a key that others may read: refused', async () => {
    await writeFile(path('open.pem'), await readFile(path('audit.pem')));
    await chmod(path('open.pem'), 0o640);
    const ended = await cli('log', 'checkpoint', '--key', 'open.pem');
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({
      code: 2,
      stderr:
        'pushleft-controller: open.pem: a private key that group or others may read or write (mode 0640); run: chmod 0600 open.pem\n',
    });
  });

  test('signed, then all of the chain computed anew: only the checkpoint tells', async () => {
    const signed = await cli('log', 'checkpoint', '--key', 'audit.pem', '--json');
    const { path: file, fresh, checkpoint } = JSON.parse(signed.stdout);
    expect({ file, fresh, checkpoint }).toEqual({
      file: '6.checkpoint.json',
      fresh: true,
      checkpoint: JSON.parse(await readFile(path(file), 'utf8')),
    });
    const against = ['--checkpoint', file, '--public-key', 'audit.pub.pem'];

    const before = await cli('log', 'verify', ...against);
    expect({ code: before.code, lines: plainLines(before) }).toEqual({
      code: 0,
      lines: [
        `the checkpoint at position 6, signed ${checkpoint.signed_at} by key ${checkpoint.key_sha256.slice(0, 16)}, agrees`,
        expect.stringMatching(/^7 events are as they were written; /),
      ],
    });
    expect(await audit(['log', 'verify', 'all.jsonl', ...against])).toMatchObject({ code: 0 });

    await rewriteLog(database.pool, 2, (body) => body.replace('fsn1', 'nbg1'));
    expect(await cli('log', 'verify')).toMatchObject({ code: 0 });
    const after = await cli('log', 'verify', ...against);
    expect({ code: after.code, lines: plainLines(after) }).toEqual({
      code: 1,
      lines: [
        'position 6: not the hash that was signed: history up to there was rewritten',
        `0 events are as they were written; hash at position 0: ${'0'.repeat(64)}`,
      ],
    });
  });

  test('a checkpoint that is believed by no key given: refused, with the reason', async () => {
    const forged = JSON.parse(await readFile(path('6.checkpoint.json'), 'utf8'));
    await writeFile(path('forged.json'), JSON.stringify({ ...forged, position: 5 }));
    const verify = (checkpoint: string, key: string) =>
      audit(['log', 'verify', 'all.jsonl', '--checkpoint', checkpoint, '--public-key', key]);
    const runs = await Promise.all([
      verify('6.checkpoint.json', 'other.pub.pem'),
      verify('forged.json', 'audit.pub.pem'),
      verify('6.checkpoint.json', 'audit.pem'),
    ]);
    expect(runs.map(({ code, stderr }) => [code, stderr.split('\n')[0]])).toEqual([
      [1, 'pushleft-controller: 6.checkpoint.json was signed by another key'],
      [1, 'pushleft-controller: forged.json has a wrong signature: it is forged or was edited'],
      [2, 'pushleft-controller: audit.pem: not an Ed25519 public key in PEM'],
    ]);
  });
});
