import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { renderUserData } from '../../../src/hetzner/cloud-init/render.ts';
import { releaseKeys, run, runWith, someValues, temporaryFolder } from './support.ts';

const NEW = 'pushleft-agent-0.2.0-linux-amd64.tar.zst';
const OLD = 'pushleft-agent-0.1.0-linux-amd64.tar.zst';
const keys = releaseKeys();
let script: string;
beforeAll(async () => {
  const outcome = renderUserData({ ...(await someValues()), releasePublicKey: keys.publicKey });
  if (!outcome.ok) expect.unreachable();
  script = outcome.script;
});

const sumLine = (content: string, name: string) => `${createHash('sha256').update(content).digest('hex')}  ${name}\n`;

/** A downloaded release in a folder, signed by openssl as the requirement tells operators to; then whatever `meddle` does to it. */
async function verified({
  sums,
  signer = keys.privatePem,
  meddle,
}: {
  sums?: string;
  signer?: string;
  meddle?: (folder: string) => void;
}) {
  using folder = temporaryFolder();
  const at = (name: string) => join(folder.path, name);
  writeFileSync(at(NEW), 'the new agent');
  writeFileSync(at('SHA256SUMS'), sums ?? sumLine('the old agent', OLD) + sumLine('the new agent', NEW));
  writeFileSync(at('release.key'), signer, { mode: 0o600 });
  await run('openssl', [
    'pkeyutl',
    '-sign',
    '-rawin',
    '-inkey',
    at('release.key'),
    '-in',
    at('SHA256SUMS'),
    '-out',
    at('raw'),
  ]);
  writeFileSync(at('SHA256SUMS.sig'), `${readFileSync(at('raw')).toString('base64')}\n`);
  meddle?.(folder.path);
  const wrote = runWith(script, folder.path, 'write_files');
  expect(wrote).toEqual({ status: 0, output: '' });
  // Tested in a condition too: there, bash ignores `set -e`.
  const plain = runWith(script, folder.path, `verify_release ${folder.path} ${NEW}`);
  const tested = runWith(script, folder.path, `if verify_release ${folder.path} ${NEW}; then exit 0; else exit 1; fi`);
  expect(tested.status === 0).toBe(plain.status === 0);
  return { accepted: plain.status === 0, output: plain.output };
}

describe('verify_release', () => {
  test('signed by the pinned key, archive as signed: accepted', async () => {
    const { accepted, output } = await verified({});
    expect(output).toContain('Signature Verified Successfully');
    expect(output).toContain(`${NEW}: OK`);
    expect(accepted).toBe(true);
  });

  test('signed by a foreign key: refused', async () => {
    const { accepted, output } = await verified({ signer: releaseKeys().privatePem });
    expect(output).toContain('Signature Verification Failure');
    expect(accepted).toBe(false);
  });

  test('sums changed after signing: refused', async () => {
    const meddle = (folder: string) => writeFileSync(join(folder, 'SHA256SUMS'), sumLine('evil', NEW));
    expect((await verified({ meddle })).accepted).toBe(false);
  });

  test('archive changed after signing: refused', async () => {
    const { accepted, output } = await verified({
      meddle: (folder) => writeFileSync(join(folder, NEW), 'the new agent, evil'),
    });
    expect(output).toContain(`${NEW}: FAILED`);
    expect(accepted).toBe(false);
  });

  test('an old release, well signed, under the new name: refused', async () => {
    const meddle = (folder: string) => writeFileSync(join(folder, NEW), 'the old agent');
    const { accepted, output } = await verified({ sums: sumLine('the old agent', OLD), meddle });
    expect(output).toContain(`the signed sums do not name ${NEW} exactly once`);
    expect(accepted).toBe(false);
  });

  test('the name only as part of another, or twice: refused', async () => {
    expect((await verified({ sums: sumLine('the new agent', `x-${NEW}`) })).accepted).toBe(false);
    expect((await verified({ sums: sumLine('the new agent', NEW).repeat(2) })).accepted).toBe(false);
  });

  test('signature that is no base64, or empty: refused', async () => {
    for (const text of ['%%%', '']) {
      const meddle = (folder: string) => writeFileSync(join(folder, 'SHA256SUMS.sig'), text);
      expect((await verified({ meddle })).accepted).toBe(false);
    }
  });
});
