import { execFile, spawnSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CloudInitValues } from '../../../src/hetzner/cloud-init/values.ts';
import { newSerial, nominalWindow } from '../../../src/pki/certificate.ts';
import { selfSignedCa } from '../../../src/pki/signer.ts';

/** A CA certificate as an operator would have one. */
export async function caPem(commonName = 'Fleet CA'): Promise<string> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keyPem = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
  const window = nominalWindow(Date.now(), 86_400);
  return (await selfSignedCa(keyPem, { commonName, serialHex: newSerial(randomBytes), ...window })).pem;
}

/** A raw Ed25519 public key in base64, as operators give it, and its private half in PEM. */
export function releaseKeys(): { publicKey: string; privatePem: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  return {
    publicKey: raw.toString('base64'),
    privatePem: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
  };
}

export async function someValues(): Promise<CloudInitValues> {
  return {
    nodeId: '0b8f6c1e-5d3a-4c1f-9a53-7e2d1c9b4a60',
    enrollmentSecret: 'a1'.repeat(32),
    gatewayUrl: 'https://gateway.example.org:8443',
    enrollUrl: 'https://gateway.example.org:8444',
    releaseUrl: 'https://releases.example.org/agent',
    agentVersion: '0.2.0',
    releasePublicKey: releaseKeys().publicKey,
    gatewayCaPem: await caPem(),
  };
}

/** A folder that is removed when the test's `using` ends. */
export function temporaryFolder(): { path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), 'pushleft-cloud-init-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Sources a script in bash below `root` and runs a command with its functions. Never throws: the status is part of the answer. */
export function runWith(
  script: string,
  root: string,
  command: string,
  environment: Readonly<Record<string, string>> = {},
) {
  const file = join(root, 'user-data.sh');
  writeFileSync(file, script);
  const env = { PATH: process.env['PATH'] ?? '', PUSHLEFT_ROOT: root, ...environment };
  const ran = spawnSync('bash', ['--norc', '-c', `. "$1"; ${command}`, 'bash', file], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return { status: ran.status, output: ran.stdout + ran.stderr };
}

/** Runs a program; rejects with its output when it fails. */
export const run = promisify(execFile);
