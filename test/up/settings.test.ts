import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SETTINGS, settingProblem, settingsFor } from '../../src/up/settings.ts';

describe('settings of up', () => {
  test('set: handed to those they are for, and to nobody else', () => {
    const env = {
      PUSHLEFT_LEASE_SECONDS: '5',
      PUSHLEFT_AGENT_LEASE_WAIT_SECONDS: '2',
      HETZNER_API_TOKEN: 'a real one',
    };
    expect(settingsFor('scheduler', env)).toEqual({ PUSHLEFT_LEASE_SECONDS: '5' });
    expect(settingsFor('agents', env)).toEqual({ PUSHLEFT_AGENT_LEASE_WAIT_SECONDS: '2', PUSHLEFT_RUNTIME: 'process' });
    expect(settingsFor('operator', env)).toEqual({});
  });

  test('not set, or empty: the preset of a local fleet, where it has one', () => {
    const presets = { PUSHLEFT_AGENT_CERT_LIFETIME_SECONDS: '2592000' };
    expect(settingsFor('gateway', {})).toEqual(presets);
    expect(settingsFor('gateway', { PUSHLEFT_AGENT_CERT_LIFETIME_SECONDS: '', PUSHLEFT_LEASE_SECONDS: '' })).toEqual(
      presets,
    );
  });

  test('set against a preset: wins', () => {
    const env = { PUSHLEFT_AGENT_CERT_LIFETIME_SECONDS: '60' };
    expect(settingsFor('gateway', env)).toEqual(env);
  });

  test('every variable that a program reads and up does not decide itself: is a setting', async () => {
    const decided =
      /BIND|_CERT$|_KEY$|_CA$|CLIENT_CA|CA_CERT|CA_KEY|_URL$|NODE_ID|STATE_DIR|AGENT_VERSION|_ADDRESS$|INGRESS|CADDY|RELEASE_|FLEET_|STUB_|TEST_/;
    const sources = [
      'src/gateway/config.ts',
      'src/scheduler/config.ts',
      'src/scheduler/thresholds.ts',
      'agent/config.ts',
      'src/provisioning/config.ts',
      'cli/program-log.ts',
    ];
    const texts = await Promise.all(sources.map((path) => readFile(join(import.meta.dirname, '../..', path), 'utf8')));
    const read = texts.flatMap((text) => [...text.matchAll(/\bPUSHLEFT_[A-Z_]+\b/g)].map(([name]) => name));
    const unknown = new Set(read.filter((name) => !decided.test(name) && !(name in SETTINGS)));
    expect([...unknown]).toEqual([]);
  });
});

describe('the first setting that a program would refuse', () => {
  test.for([
    ['none set', {}, undefined],
    ['empty: not set', { PUSHLEFT_LEASE_SECONDS: '' }, undefined],
    [
      'the least lease, a part of a second between passes',
      { PUSHLEFT_LEASE_SECONDS: '3', PUSHLEFT_SCHEDULER_INTERVAL_SECONDS: '0.1' },
      undefined,
    ],
    [
      'a shorter lease',
      { PUSHLEFT_LEASE_SECONDS: '2' },
      'PUSHLEFT_LEASE_SECONDS must be a whole number of seconds from 3 to 3600',
    ],
    [
      'no number',
      { PUSHLEFT_NODE_UNHEALTHY_AFTER: 'soon' },
      'PUSHLEFT_NODE_UNHEALTHY_AFTER must be a number of seconds from 0.1 to 86400',
    ],
    [
      'an unknown level',
      { PUSHLEFT_LOG_LEVEL: 'loud' },
      'PUSHLEFT_LOG_LEVEL must be one of debug, info, warn, error, silent',
    ],
    ['a relative path', { PUSHLEFT_DOCKER_SOCKET: 'docker.sock' }, 'PUSHLEFT_DOCKER_SOCKET must be an absolute path'],
  ] as const)('%s', ([, env, problem]) => expect(settingProblem(env)).toBe(problem));
});
