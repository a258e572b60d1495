import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { build } from '../../../agent/jobs/build.ts';
import { systemTime } from '../../../agent/time.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { eventually, isAlive } from '../runtime/support/workloads.ts';
import { type Connected, connect, hurriedTime } from '../support/client.ts';
import { problem, type Reply } from '../support/stub-gateway.ts';

const run = promisify(execFile);
const NEVER = new AbortController().signal;
const LEASE = { id: '20000000-0000-4000-8000-000000000001', token: 'token-0123456789abcdef' };

let connected: Connected;
let source: Buffer;
/** `<state>/builds`. */
let builds: string;
let asked: { readonly jobId: string | undefined; readonly token: unknown }[];

beforeAll(async () => {
  connected = await connect();
  builds = `${connected.directory}/builds`;
  source = await archive(async (root) => {
    await mkdir(`${root}/app`);
    await writeFile(`${root}/app/main.txt`, 'hello\n');
  });
});
afterAll(() => connected[Symbol.asyncDispose]());

beforeEach(() => {
  asked = [];
  serve(source);
});

/** Answers downloads with these, and with the last one from then on. */
function serve(...replies: readonly (Buffer | Reply)[]): void {
  connected.gateway.source = ({ jobId, headers }) => {
    asked.push({ jobId, token: headers['x-pushleft-lease-token'] });
    const reply = replies[Math.min(asked.length, replies.length) - 1] ?? 'drop';
    return Buffer.isBuffer(reply) ? { status: 200, body: reply } : reply;
  };
}

/** A tar archive of what `fill` puts into a folder. */
async function archive(fill: (root: string) => Promise<void>, ...options: readonly string[]): Promise<Buffer> {
  await using folder = await temporaryDirectory();
  await mkdir(`${folder.path}/root`);
  await fill(`${folder.path}/root`);
  await run('tar', ['-C', `${folder.path}/root`, '-cf', `${folder.path}/archive`, ...options, '.']);
  return readFile(`${folder.path}/archive`);
}

const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');

function buildWith(script: string, { of = source, seconds = 20, signal = NEVER } = {}) {
  const handler = build({ gateway: () => connected.client, stateDir: connected.directory, time: systemTimeInHaste });
  const payload = {
    deployment_id: '50000000-0000-4000-8000-00000000000d',
    source_sha256: sha256(of),
    source_bytes: of.length,
    command: ['/bin/sh', '-c', script],
    timeout_seconds: seconds,
  };
  return handler(payload, signal, LEASE);
}

/** Downloads are tried again at once; what ends processes needs real time. */
const systemTimeInHaste = {
  ...systemTime,
  pause: (ms: number, signal?: AbortSignal) => (ms >= 500 ? hurriedTime() : systemTime).pause(ms, signal),
};

/** What is left of builds, but for the note on the last failure. */
const left = async () => (await readdir(builds)).filter((name) => name !== 'last-failure.log');

describe('build', () => {
  test('a source: downloaded with the token of the lease, unpacked, built; the digest of what is at $ARTIFACT', async () => {
    const result = await buildWith('tr a-z A-Z <app/main.txt >"$ARTIFACT"');
    expect(result).toEqual({ artifact_sha256: sha256('HELLO\n'), artifact_bytes: 6 });
    expect(asked).toEqual([{ jobId: LEASE.id, token: LEASE.token }]);
    expect(await left()).toEqual([]);
  });

  test('the command: PATH, HOME and ARTIFACT alone, in the folder of the source', async () => {
    const script = `env | sed 's/=.*//' | grep -vxE 'PWD|_|SHLVL|OLDPWD' | sort >"$ARTIFACT"`;
    expect(await buildWith(script)).toMatchObject({ artifact_sha256: sha256('ARTIFACT\nHOME\nPATH\n') });
  });

  test('exit 2: work_failed with the code; the end of its output is kept, its folder is not', async () => {
    await expect(buildWith('echo broken; exit 2')).rejects.toMatchObject({
      code: 'work_failed',
      message: 'the build ended with exit code 2',
    });
    expect(await readFile(`${builds}/last-failure.log`, 'utf8')).toBe('broken\n');
    expect(await left()).toEqual([]);
  });

  test.each([
    ['nothing', 'true'],
    ['an empty file', ': >"$ARTIFACT"'],
    ['a folder', 'mkdir "$ARTIFACT"'],
    ['a link', 'ln -s /etc/hostname "$ARTIFACT"'],
  ])('%s at $ARTIFACT: work_failed', async (_, script) => {
    await expect(buildWith(script)).rejects.toMatchObject({ code: 'work_failed' });
    expect(await left()).toEqual([]);
  });

  test('a program that is not there: work_failed', async () => {
    const handler = build({ gateway: () => connected.client, stateDir: connected.directory, time: systemTime });
    const digest = { source_sha256: sha256(source), source_bytes: source.length };
    const payload = { deployment_id: '50000000-0000-4000-8000-00000000000d', ...digest, timeout_seconds: 20 };
    await expect(handler({ ...payload, command: ['/nowhere/make'] }, NEVER, LEASE)).rejects.toThrow('/nowhere/make');
  });
});

describe('what does not end', () => {
  const endless = (pids: string) => `sleep 600 & echo $! >${pids}; wait`;

  test('not done in time: work_failed, and everything it started is ended', async () => {
    const pids = `${connected.directory}/pid-late`;
    await expect(buildWith(endless(pids), { seconds: 1 })).rejects.toMatchObject({
      code: 'work_failed',
      message: 'the build was not done within 1 s',
    });
    expect([await isAlive(Number(await eventually(pids))), await left()]).toEqual([false, []]);
  });

  test('the lease is lost: the same at once', async () => {
    const pids = `${connected.directory}/pid-lost`;
    const stop = new AbortController();
    const building = buildWith(endless(pids), { signal: stop.signal });
    const pid = Number(await eventually(pids));
    stop.abort(new Error('lease lost'));
    await expect(building).rejects.toThrow('lease lost');
    expect([await isAlive(pid), await left()]).toEqual([false, []]);
  });

  test('a child that the command leaves behind: ended with the build', async () => {
    const pids = `${connected.directory}/pid-child`;
    await buildWith(`setsid sleep 600 >/dev/null 2>&1 & echo $! >${pids}; echo built >"$ARTIFACT"`);
    expect(await isAlive(Number(await eventually(pids)))).toBe(false);
  });

  test('the folder of a build whose agent was killed: removed by the next build', async () => {
    await mkdir(`${builds}/20000000-0000-4000-8000-0000000000ff/source`, { recursive: true });
    await buildWith('echo built >"$ARTIFACT"');
    expect(await left()).toEqual([]);
  });
});

describe('the download', () => {
  test('cut short, other bytes, more bytes or 503: tried again', async () => {
    const other = Buffer.from(source).fill(1);
    const more = Buffer.concat([source, source]);
    serve('drop', other, more, problem(503, 'unavailable'), source);
    await buildWith('echo built >"$ARTIFACT"');
    expect(asked).toHaveLength(5);
  });

  test('other bytes again and again: given up, nothing is unpacked', async () => {
    serve(Buffer.from(source).fill(1));
    await expect(buildWith('echo built >"$ARTIFACT"')).rejects.toThrow('the source was not downloaded: ');
    expect([asked.length, await left()]).toEqual([5, []]);
  });

  test('409: not tried again', async () => {
    serve(problem(409, 'lease_conflict'));
    await expect(buildWith('true')).rejects.toThrow('the source was not downloaded: conflict');
    expect(asked).toHaveLength(1);
  });

  test('it hangs, the lease is lost: ends at once', async () => {
    serve('hold');
    const building = buildWith('true', { signal: AbortSignal.timeout(100) });
    await expect(building).rejects.toThrow();
    expect(await left()).toEqual([]);
  });
});

describe('an archive', () => {
  const touch = async (root: string) => writeFile(`${root}/file`, 'text');

  test.each([
    ['with an absolute path', (root: string) => touch(root), ['--transform=s,^\\./file,/tmp/file,', '-P']],
    ['with a path that leads out', (root: string) => touch(root), ['--transform=s,^\\./file,../file,', '-P']],
    ['with a pipe', (root: string) => run('mkfifo', [`${root}/pipe`]).then(() => undefined), []],
  ])('%s: work_failed, not unpacked', async (_, fill, options) => {
    const bad = await archive(fill, ...options);
    serve(bad);
    await expect(buildWith('echo built >"$ARTIFACT"', { of: bad })).rejects.toThrow('the source is not unpacked');
    expect(await left()).toEqual([]);
  });

  test('that is none: work_failed', async () => {
    const bad = Buffer.from('not an archive at all');
    serve(bad);
    await expect(buildWith('true', { of: bad })).rejects.toMatchObject({ code: 'work_failed' });
  });

  test('compressed: unpacked', async () => {
    const compressed = await archive(touch, '--gzip');
    serve(compressed);
    expect(await buildWith('cp file "$ARTIFACT"', { of: compressed })).toMatchObject({ artifact_bytes: 4 });
  });

  test('whose files would fill the disk: work_failed, not unpacked', async () => {
    const bomb = await archive(
      (root) => run('truncate', ['-s', '3G', `${root}/zeros`]).then(() => undefined),
      '--sparse',
    );
    serve(bomb);
    await expect(buildWith('true', { of: bomb })).rejects.toThrow('larger than');
  });
});
