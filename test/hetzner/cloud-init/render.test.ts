import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { readUserData } from '../../../src/hetzner/cloud-init/read-user-data.ts';
import { renderUserData, USER_DATA_MAX_BYTES } from '../../../src/hetzner/cloud-init/render.ts';
import type { CloudInitValues } from '../../../src/hetzner/cloud-init/values.ts';
import { caPem, run, runWith, someValues, temporaryFolder } from './support.ts';

let values: CloudInitValues;
beforeAll(async () => {
  values = await someValues();
});

function rendered(of: CloudInitValues): string {
  const outcome = renderUserData(of);
  if (!outcome.ok) expect.unreachable(outcome.problems.join('; '));
  return outcome.script;
}
const problems = (change: Partial<Record<keyof CloudInitValues, unknown>>) => {
  const outcome = renderUserData({ ...values, ...change } as CloudInitValues);
  return outcome.ok ? [] : outcome.problems;
};

describe('the script', () => {
  test('bash finds nothing wrong with it', async () => {
    using folder = temporaryFolder();
    const { status, output } = runWith(rendered(values), folder.path, 'bash -n "$1"');
    expect({ status, output }).toEqual({ status: 0, output: '' });
  });

  test('each value stands in quoted heredocs only', () => {
    const script = rendered(values);
    const outside = script.replaceAll(/<<'PUSHLEFT_END_OF_FILE'\n[\s\S]*?\nPUSHLEFT_END_OF_FILE\n/g, '');
    for (const value of Object.values(values)) {
      expect(script).toContain(value.trim().split('\n')[1] ?? value.trim());
      expect(outside).not.toContain(value.trim());
    }
  });

  test('read back: what was rendered', () => {
    const read = readUserData(rendered(values));
    expect(read.enrollmentSecret).toBe(values.enrollmentSecret);
    expect(read.gatewayCaPem).toBe(values.gatewayCaPem);
    expect(read.environment).toEqual({
      PUSHLEFT_NODE_ID: values.nodeId,
      PUSHLEFT_GATEWAY_URL: values.gatewayUrl,
      PUSHLEFT_ENROLL_URL: values.enrollUrl,
      PUSHLEFT_AGENT_CA: '/etc/pushleft/gateway-ca.pem',
      PUSHLEFT_AGENT_VERSION: values.agentVersion,
      PUSHLEFT_RELEASE_URL: values.releaseUrl,
      PUSHLEFT_RELEASE_PUBKEY: values.releasePublicKey,
    });
  });

  test('another script: reading says which file is missing', () =>
    expect(() => readUserData('#!/bin/bash\n')).toThrow('the user-data writes no /etc/pushleft/agent.env'));

  test('files at their places: modes and exact content', () => {
    using folder = temporaryFolder();
    expect(runWith(rendered(values), folder.path, 'write_files')).toEqual({ status: 0, output: '' });
    const at = (path: string) => [
      (statSync(join(folder.path, path)).mode & 0o777).toString(8),
      readFileSync(join(folder.path, path), 'utf8'),
    ];
    expect(at('var/lib/pushleft/enrollment-secret')).toEqual(['600', `${values.enrollmentSecret}\n`]);
    expect(at('etc/pushleft/gateway-ca.pem')).toEqual(['644', values.gatewayCaPem]);
    expect(at('etc/modules-load.d/pushleft.conf')).toEqual(['644', 'br_netfilter\n']);
    expect(at('etc/sysctl.d/90-pushleft.conf')).toEqual(['644', 'net.bridge.bridge-nf-call-iptables=1\n']);
    expect((statSync(join(folder.path, 'var/lib/pushleft')).mode & 0o777).toString(8)).toBe('700');
    expect(at('etc/systemd/system/pushleft-agent.service')[1]).toContain(
      'ConditionPathIsMountPoint=/var/lib/pushleft/data\n',
    );
    expect(at('etc/systemd/system/pushleft-agent-update.service')[1]).toContain('ReadWritePaths=/usr/local/bin\n');
  });

  test('release key: openssl reads the same 32 bytes', async () => {
    using folder = temporaryFolder();
    runWith(rendered(values), folder.path, 'write_files');
    const key = join(folder.path, 'etc/pushleft/release-key.pem');
    const { stdout } = await run('openssl', ['pkey', '-pubin', '-in', key, '-outform', 'DER'], { encoding: 'buffer' });
    expect(stdout.subarray(-32).toString('base64')).toBe(values.releasePublicKey);
  });

  test('any valid values: the bytes on disk equal them', { timeout: 120_000 }, async () => {
    const cas = [values.gatewayCaPem, values.gatewayCaPem + (await caPem('Next fleet CA'))];
    const word = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/);
    const url = fc
      .tuple(
        word,
        word,
        fc.integer({ min: 1, max: 65_535 }),
        fc.stringMatching(/^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,9}){0,3}\/?$/),
      )
      .map(([host, zone, port, path]) => `https://${host}.${zone}.example:${port}${path}`);
    const arbitrary: fc.Arbitrary<CloudInitValues> = fc.record({
      nodeId: fc.uuid(),
      enrollmentSecret: fc.stringMatching(/^[0-9a-f]{64}$/),
      gatewayUrl: url,
      enrollUrl: url,
      releaseUrl: url,
      agentVersion: fc.stringMatching(/^\d{1,3}\.\d{1,3}\.\d{1,3}(-[0-9A-Za-z]{1,8}(\.[0-9A-Za-z]{1,4}){0,2})?$/),
      releasePublicKey: fc
        .uint8Array({ minLength: 32, maxLength: 32 })
        .map((bytes) => Buffer.from(bytes).toString('base64')),
      gatewayCaPem: fc.constantFrom(...cas),
    });
    fc.assert(
      fc.property(arbitrary, (some) => {
        using folder = temporaryFolder();
        const script = rendered(some);
        const show =
          'load_environment; printf "%s\\n" "$PUSHLEFT_NODE_ID" "$PUSHLEFT_GATEWAY_URL" "$PUSHLEFT_ENROLL_URL" "$PUSHLEFT_RELEASE_URL" "$PUSHLEFT_AGENT_VERSION" "$PUSHLEFT_RELEASE_PUBKEY"';
        const { status, output } = runWith(script, folder.path, `write_files; ${show}`);
        expect(status).toBe(0);
        expect(output).toBe(
          [
            some.nodeId,
            some.gatewayUrl,
            some.enrollUrl,
            some.releaseUrl,
            some.agentVersion,
            some.releasePublicKey,
            '',
          ].join('\n'),
        );
        for (const [path, { content, mode }] of readUserData(script).files) {
          expect(readFileSync(join(folder.path, path), 'utf8')).toBe(content);
          expect(statSync(join(folder.path, path)).mode & 0o777).toBe(mode);
        }
        expect(readFileSync(join(folder.path, 'etc/pushleft/gateway-ca.pem'), 'utf8')).toBe(some.gatewayCaPem);
        expect(readFileSync(join(folder.path, 'var/lib/pushleft/enrollment-secret'), 'utf8')).toBe(
          `${some.enrollmentSecret}\n`,
        );
      }),
      { numRuns: 20, interruptAfterTimeLimit: 60_000 },
    );
  });
});

describe('values that are refused before rendering', () => {
  test('a bad secret: named, never shown', () => {
    const told = problems({ enrollmentSecret: 'B2'.repeat(32) });
    expect(told).toEqual(['enrollmentSecret: must be 64 hex digits']);
  });

  test.each([
    'http://gateway.example.org',
    'https://gateway.example.org/$(id)',
    'https://gateway.example.org/a;b',
    'https://gateway.example.org/`id`',
    "https://gateway.example.org/'",
    'https://gateway.example.org/a b',
    'https://gateway.example.org/\nPUSHLEFT_END_OF_FILE',
    'https://user:word@gateway.example.org/',
    'https://gateway.example.org/../x',
    'https://gateway.example.org/?a=b',
    'https://gateway.example.org/#a',
    'https://gateway.example.org:99999',
    'https://[::1]:8443',
    'https://-gateway.example.org',
    'https://',
    `https://gateway.example.org/${'a'.repeat(512)}`,
  ])('URL %j', (url) => {
    expect(problems({ gatewayUrl: url })).toHaveLength(1);
    expect(problems({ enrollUrl: url })).toHaveLength(1);
    expect(problems({ releaseUrl: url })).toHaveLength(1);
  });

  test.each([
    '',
    '1',
    '1.2',
    'v1.2.3',
    '1.2.3-',
    '1.2.3/..',
    '1.2.3 ',
    '1.2.3\n',
    '1.2.3+x;y',
    '1.2.3-a..b',
    `1.2.3-${'a'.repeat(64)}`,
  ])('version %j', (agentVersion) => expect(problems({ agentVersion })).toHaveLength(1));

  test.each(['', 'AAAA', `${'A'.repeat(42)}B=`, `${'A'.repeat(43)}=\n`, `${'A'.repeat(42)}$=`])(
    'release key %j',
    (releasePublicKey) => expect(problems({ releasePublicKey }).length).toBeGreaterThan(0),
  );

  test('node id in upper case', () =>
    expect(problems({ nodeId: values.nodeId.toUpperCase() })).toEqual(['nodeId: is malformed']));

  test('CA with a key, with text around it, with CRLF, without its line end, empty, or a certificate that is none', () => {
    const pem = values.gatewayCaPem;
    const key = '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n';
    const garbage = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
    for (const bad of [
      pem + key,
      `subject=CA\n${pem}`,
      pem.replaceAll('\n', '\r\n'),
      pem.trimEnd(),
      '',
      garbage,
      `${pem}\n$(id)\n`,
    ]) {
      expect(problems({ gatewayCaPem: bad }).length).toBeGreaterThan(0);
    }
  });

  test('an unknown value: refused', () => expect(problems({ ...values, color: 'red' } as never)).toHaveLength(1));

  test('two bad values: both told', () => expect(problems({ agentVersion: 'x', nodeId: 'y' })).toHaveLength(2));
});

describe('size', () => {
  test('a CA bundle that makes the script too large : refused; one certificate fewer: accepted', () => {
    const small = Buffer.byteLength(rendered(values));
    const block = Buffer.byteLength(values.gatewayCaPem);
    const most = 1 + Math.floor((USER_DATA_MAX_BYTES - small) / block);
    const bundle = (count: number) => values.gatewayCaPem.repeat(count);
    expect(Buffer.byteLength(rendered({ ...values, gatewayCaPem: bundle(most) }))).toBeLessThanOrEqual(
      USER_DATA_MAX_BYTES,
    );
    const outcome = renderUserData({ ...values, gatewayCaPem: bundle(most + 1) });
    expect(outcome).toMatchObject({ ok: false, code: 'user_data_too_large' });
    expect(small).toBeLessThan(USER_DATA_MAX_BYTES / 2);
  });
});
