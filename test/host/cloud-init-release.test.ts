import { createHash, randomBytes, sign } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { renderUserData } from '../../src/hetzner/cloud-init/render.ts';
import { releaseKeys, run, someValues, temporaryFolder } from '../hetzner/cloud-init/support.ts';

const ARCHIVE = 'pushleft-agent-0.2.0-linux-amd64.tar.zst';
const AGENT = '#!/bin/bash\necho pushleft-agent 0.2.0\n';
const INSTALL = `download_release "$PUSHLEFT_ROOT/work" ${ARCHIVE} && verify_release "$PUSHLEFT_ROOT/work" ${ARCHIVE} && extract_agent "$PUSHLEFT_ROOT/work" ${ARCHIVE} && install_agent "$PUSHLEFT_ROOT/work"`;
const keys = releaseKeys();

beforeAll(async () => {
  for (const [program, debianPackage] of [
    ['curl', 'curl'],
    ['zstd', 'zstd'],
    ['tar', 'tar'],
  ] as const) {
    await run(program, ['--version']).catch(() => expect.unreachable(`the Debian package ${debianPackage} is missing`));
  }
});

/** Packs what `fill` puts into a folder, signs it, serves it over https on loopback and lets the script install it. */
async function installed(
  fill: (folder: string) => readonly string[],
  meddle: (files: Map<string, Uint8Array>) => void = () => {},
) {
  const folder = temporaryFolder();
  const at = (...path: string[]) => join(folder.path, ...path);
  for (const name of ['packed', 'work']) mkdirSync(at(name));
  await run('tar', ['--zstd', '-cf', at(ARCHIVE), '-C', at('packed'), ...fill(at('packed'))]);
  const archive = readFileSync(at(ARCHIVE));
  const sums = Buffer.from(`${createHash('sha256').update(archive).digest('hex')}  ${ARCHIVE}\n`);
  const files = new Map<string, Uint8Array>([
    [ARCHIVE, archive],
    ['SHA256SUMS', sums],
    ['SHA256SUMS.sig', Buffer.from(`${sign(null, sums, keys.privatePem).toString('base64')}\n`)],
  ]);
  meddle(files);
  await run('openssl', [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-keyout',
    at('tls.key'),
    '-out',
    at('tls.pem'),
    '-days',
    '2',
    '-subj',
    '/CN=localhost',
    '-addext',
    'subjectAltName=DNS:localhost',
  ]);
  const server = createServer(
    { key: readFileSync(at('tls.key')), cert: readFileSync(at('tls.pem')) },
    (request, response) => {
      const file = files.get(request.url?.replace('/agent/0.2.0/', '') ?? '');
      response.writeHead(file === undefined ? 404 : 200).end(file);
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const releaseUrl = `https://localhost:${(server.address() as AddressInfo).port}/agent/`;
  const outcome = renderUserData({ ...(await someValues()), releasePublicKey: keys.publicKey, releaseUrl });
  if (!outcome.ok) expect.unreachable();
  writeFileSync(at('user-data.sh'), outcome.script);
  const env = { PATH: process.env['PATH'] ?? '', PUSHLEFT_ROOT: folder.path, CURL_CA_BUNDLE: at('tls.pem') };
  const ran = await run(
    'bash',
    ['--norc', '-c', `. "$1"; write_files; load_environment; ${INSTALL}`, 'bash', at('user-data.sh')],
    { env },
  ).then(
    ({ stdout, stderr }) => ({ ok: true, output: stdout + stderr }),
    (error: { stdout: string; stderr: string }) => ({ ok: false, output: error.stdout + error.stderr }),
  );
  server.close();
  server.closeAllConnections();
  const target = at('usr/local/bin/pushleft-agent');
  return { ...ran, target, present: existsSync(target), [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

const agentAlone = (folder: string) => {
  writeFileSync(join(folder, 'pushleft-agent'), AGENT);
  return ['pushleft-agent'];
};

describe('download and install of a signed release over https', () => {
  test('good release: installed, executable, said its version', async () => {
    using done = await installed(agentAlone);
    expect(done.output).toContain('pushleft-agent 0.2.0\n');
    expect(done.ok).toBe(true);
    expect(readFileSync(done.target, 'utf8')).toBe(AGENT);
    expect(statSync(done.target).mode & 0o777).toBe(0o755);
  });

  test.each<[string, (folder: string) => readonly string[]]>([
    ['a second file', (folder) => (writeFileSync(join(folder, 'x'), ''), [...agentAlone(folder), 'x'])],
    ['a symbolic link', (folder) => (symlinkSync('/bin/sh', join(folder, 'pushleft-agent')), ['pushleft-agent'])],
    ['a path', (folder) => (agentAlone(folder), ['./pushleft-agent'])],
    ['another name', (folder) => (writeFileSync(join(folder, 'agent'), AGENT), ['agent'])],
  ])('archive with %s: refused', async (_, fill) => {
    using done = await installed(fill);
    expect(done.output).toContain('must hold exactly one regular file');
    expect([done.ok, done.present]).toEqual([false, false]);
  });

  test('archive tampered with: refused', async () => {
    using done = await installed(agentAlone, (files) => files.set(ARCHIVE, randomBytes(200)));
    expect(done.output).toContain('FAILED');
    expect([done.ok, done.present]).toEqual([false, false]);
  });

  test('sums larger than 64 KiB: not downloaded', async () => {
    using done = await installed(agentAlone, (files) => files.set('SHA256SUMS', randomBytes(70_000)));
    expect([done.ok, done.present]).toEqual([false, false]);
  });

  test('a program that cannot run: not installed', async () => {
    using done = await installed(
      (folder) => (writeFileSync(join(folder, 'pushleft-agent'), '#!/bin/bash\nexit 1\n'), ['pushleft-agent']),
    );
    expect([done.ok, done.present]).toEqual([false, false]);
  });
});
