import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readProvisioningSettings } from '../../src/provisioning/config.ts';
import { caPem, releaseKeys, temporaryFolder } from '../hetzner/cloud-init/support.ts';

const folder = temporaryFolder();
const { publicKey } = releaseKeys();
let ca: string;
let env: Record<string, string>;
beforeAll(async () => {
  ca = await caPem();
  writeFileSync(join(folder.path, 'ca.pem'), ca);
  writeFileSync(join(folder.path, 'no-ca.pem'), 'not a certificate\n');
  env = {
    HETZNER_API_TOKEN: 'canary-token',
    PUSHLEFT_FLEET_SSH_KEYS: 'operator, 4711',
    PUSHLEFT_FLEET_OPERATOR_CIDRS: '203.0.113.0/24,2001:db8::/32',
    PUSHLEFT_FLEET_GATEWAY_CA_FILE: join(folder.path, 'ca.pem'),
    PUSHLEFT_GATEWAY_URL: 'https://gateway.example:8443',
    PUSHLEFT_ENROLL_URL: 'https://gateway.example:8444',
    PUSHLEFT_RELEASE_URL: 'https://releases.example/agent',
    PUSHLEFT_RELEASE_PUBKEY: publicKey,
    PUSHLEFT_AGENT_VERSION: '0.1.0',
  };
});
afterAll(() => folder[Symbol.dispose]());

const messageWith = (changes: Record<string, string>) => {
  const read = readProvisioningSettings({ ...env, ...changes });
  return read.ok ? 'read' : read.message;
};

test('everything set: the settings, with the defaults of API and secret lifetime', () => {
  expect(readProvisioningSettings(env)).toEqual({
    ok: true,
    settings: {
      apiToken: 'canary-token',
      apiUrl: 'https://api.hetzner.cloud/v1',
      sshKeys: ['operator', '4711'],
      operatorCidrs: ['203.0.113.0/24', '2001:db8::/32'],
      caFile: join(folder.path, 'ca.pem'),
      gatewayUrl: 'https://gateway.example:8443',
      enrollUrl: 'https://gateway.example:8444',
      releaseUrl: 'https://releases.example/agent',
      releasePublicKey: publicKey,
      agentVersion: '0.1.0',
      secretTtlMs: 900_000,
    },
  });
});

test('any variable missing or empty: it is named', () => {
  const { PUSHLEFT_FLEET_GATEWAY_CA_FILE: _, ...needed } = env;
  for (const name of Object.keys(needed)) expect(messageWith({ [name]: '' })).toBe(`${name} is not set`);
});

test.each<[string, string, string]>([
  ['HETZNER_API_TOKEN', 'canary token', 'HETZNER_API_TOKEN must be one word'],
  ['HETZNER_API_URL', 'http://api.example/v1', 'an https URL (or http to a loopback address)'],
  ['PUSHLEFT_FLEET_SSH_KEYS', ' , ', 'PUSHLEFT_FLEET_SSH_KEYS names nothing'],
  ['PUSHLEFT_FLEET_OPERATOR_CIDRS', '203.0.113.7/24', 'did you mean 203.0.113.0/24?'],
  ['PUSHLEFT_GATEWAY_URL', 'https://gateway.example/path', 'must be an https origin'],
  ['PUSHLEFT_ENROLL_URL', 'http://gateway.example', 'must be an https URL of plain characters'],
  ['PUSHLEFT_RELEASE_URL', 'https://releases.example/$(id)', 'must be an https URL of plain characters'],
  ['PUSHLEFT_RELEASE_PUBKEY', 'AAAA', 'must be the base64 of a raw Ed25519 public key'],
  ['PUSHLEFT_AGENT_VERSION', 'latest', 'must be a version'],
  ['PUSHLEFT_ENROLLMENT_SECRET_TTL_SECONDS', '0', 'must be a whole number of seconds from 1 to 86400'],
])('%s=%s: refused by name', (name, value, message) => {
  expect(messageWith({ [name]: value })).toMatch(new RegExp(`^${name} `));
  expect(messageWith({ [name]: value })).toContain(message);
  expect(messageWith({ [name]: value })).not.toContain('canary');
});

test('a CA file that is not there or holds no CA: refused by name', () => {
  const named = (file: string) => messageWith({ PUSHLEFT_FLEET_GATEWAY_CA_FILE: join(folder.path, file) });
  expect(named('missing.pem')).toBe('PUSHLEFT_FLEET_GATEWAY_CA_FILE names a file that cannot be read (ENOENT)');
  expect(named('no-ca.pem')).toBe(
    'PUSHLEFT_FLEET_GATEWAY_CA_FILE names a file that must be CERTIFICATE blocks in PEM and nothing else',
  );
});

test('http to this host, as the stub listens: accepted', () => {
  expect(messageWith({ HETZNER_API_URL: 'http://127.0.0.1:8480/v1' })).toBe('read');
});
