import { execFile } from 'node:child_process';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { checkpointText, readCheckpoint, signCheckpoint } from '../../src/log/checkpoint.ts';
import { digest, START } from '../support/events.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const run = promisify(execFile);
const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const head = { epoch: 1, position: 412, hash: digest('4ead') };
const checkpoint = signCheckpoint(head, START, privateKey);

describe('a signed checkpoint', () => {
  test('read with its key: says what was signed, when, and by which key', () => {
    expect(readCheckpoint(checkpointText(checkpoint), publicKey)).toEqual({
      version: 1,
      ...head,
      signed_at: '2026-03-01T12:00:00.000Z',
      key_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      signature: expect.stringMatching(/^[A-Za-z0-9+/]{86}==$/),
    });
  });

  test('its members in another order: the same checkpoint', () => {
    const reversed = Object.fromEntries(Object.entries(checkpoint).toReversed());
    expect(readCheckpoint(JSON.stringify(reversed), publicKey)).toEqual(checkpoint);
  });

  test.for([
    ['epoch', 2],
    ['position', 413],
    ['hash', digest('bad')],
    ['signed_at', '2026-03-01T12:00:00.001Z'],
    ['signature', Buffer.alloc(64, 7).toString('base64')],
  ] as const)('another %s: a wrong signature', ([field, value]) => {
    expect(readCheckpoint(JSON.stringify({ ...checkpoint, [field]: value }), publicKey)).toBe('bad_signature');
  });

  test('read with another key: not by that one', () => {
    const other = generateKeyPairSync('ed25519').publicKey;
    expect(readCheckpoint(checkpointText(checkpoint), other)).toBe('other_key');
  });

  test('signed by another key, which it names as the right one: a wrong signature', () => {
    const forged = signCheckpoint(head, START, generateKeyPairSync('ed25519').privateKey);
    const text = JSON.stringify({ ...forged, key_sha256: checkpoint.key_sha256 });
    expect(readCheckpoint(text, publicKey)).toBe('bad_signature');
  });

  test.for([
    ['nothing', ''],
    ['another version', JSON.stringify({ ...checkpoint, version: 2 })],
    ['a member more', JSON.stringify({ ...checkpoint, note: '' })],
    ['no signature', JSON.stringify({ ...checkpoint, signature: undefined })],
  ])('%s: malformed', ([, text]) => {
    expect(readCheckpoint(text ?? '', publicKey)).toBe('malformed');
  });

  test('openssl, given the documented bytes: verifies it, and refuses others', async () => {
    await using folder = await temporaryDirectory();
    const [signed, signature, key] = ['signed', 'signature', 'key.pem'].map((name) => join(folder.path, name));
    const { signature: base64, ...unsigned } = checkpoint;
    const sorted = Object.entries(unsigned).toSorted(([a], [b]) => (a < b ? -1 : 1));
    const canonical = JSON.stringify(Object.fromEntries(sorted));
    const verify = () =>
      run('openssl', [
        'pkeyutl',
        '-verify',
        '-rawin',
        '-pubin',
        '-inkey',
        key ?? '',
        '-in',
        signed ?? '',
        '-sigfile',
        signature ?? '',
      ]);
    await writeFile(signature ?? '', Buffer.from(base64, 'base64'));
    await writeFile(key ?? '', createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }));

    await writeFile(signed ?? '', `pushleft-log-checkpoint\n${canonical}`);
    expect((await verify()).stdout).toBe('Signature Verified Successfully\n');
    await writeFile(signed ?? '', canonical);
    await expect(verify()).rejects.toMatchObject({ code: 1 });
  });

  test("its key's name: SHA-256 of the DER that openssl writes", async () => {
    await using folder = await temporaryDirectory();
    const pem = join(folder.path, 'key.pem');
    await writeFile(pem, publicKey.export({ type: 'spki', format: 'pem' }));
    const der = join(folder.path, 'key.der');
    await run('openssl', ['pkey', '-pubin', '-in', pem, '-outform', 'DER', '-out', der]);
    const { stdout: sum } = await run('openssl', ['dgst', '-sha256', '-r', der]);
    expect(sum.split(' ')[0]).toBe(checkpoint.key_sha256);
  });
});
