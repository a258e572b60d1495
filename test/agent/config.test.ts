import { describe, expect, test } from 'vitest';
import { readConfig } from '../../agent/config.ts';

const COMPLETE = {
  PUSHLEFT_NODE_ID: '10000000-0000-4000-8000-00000000000a',
  PUSHLEFT_AGENT_CA: '/etc/pushleft/gateway-ca.pem',
  PUSHLEFT_GATEWAY_URL: 'https://gateway.example:8443',
  PUSHLEFT_ENROLL_URL: 'https://[::1]:8444',
};

describe('readConfig', () => {
  test('the four required variables: everything else has its default', () => {
    expect(readConfig(COMPLETE)).toEqual({
      ok: true,
      config: {
        nodeId: '10000000-0000-4000-8000-00000000000a',
        bootstrapCaFile: '/etc/pushleft/gateway-ca.pem',
        gatewayUrl: new URL('https://gateway.example:8443'),
        enrollUrl: new URL('https://[::1]:8444'),
        stateDir: '/var/lib/pushleft',
        runtime: 'docker',
        dockerSocket: '/var/run/docker.sock',
        advertiseAddress: undefined,
        ingress: null,
        ingressBind: { host: '0.0.0.0', port: 80 },
        caddyAdmin: new URL('http://127.0.0.1:2019'),
        leaseWaitSeconds: 20,
        renewCheckSeconds: 600,
        stopGraceSeconds: 20,
      },
    });
  });

  test.each(Object.keys(COMPLETE))('%s missing or empty: named', (name) => {
    for (const value of [undefined, '']) {
      expect(readConfig({ ...COMPLETE, [name]: value })).toEqual({ ok: false, problem: `${name} is not set` });
    }
  });

  test.each([
    ['PUSHLEFT_NODE_ID', 'app-1', "a node's id: a UUID in lower case"],
    ['PUSHLEFT_AGENT_CA', 'ca.pem', 'an absolute path'],
    ['PUSHLEFT_GATEWAY_URL', 'http://gateway.example', 'an https origin such as https://gateway.example:8443'],
    ['PUSHLEFT_GATEWAY_URL', 'https://user@gateway.example', 'an https origin such as https://gateway.example:8443'],
    ['PUSHLEFT_ENROLL_URL', 'https://gateway.example/v1', 'an https origin such as https://gateway.example:8443'],
    ['PUSHLEFT_AGENT_STATE_DIR', './state', 'an absolute path'],
    ['PUSHLEFT_RUNTIME', 'podman', 'docker or process'],
    ['PUSHLEFT_AGENT_ADVERTISE_ADDRESS', 'app-1', 'an IP address'],
    ['PUSHLEFT_AGENT_LEASE_WAIT_SECONDS', '31', 'a whole number of seconds from 0 to 30'],
    ['PUSHLEFT_AGENT_RENEW_CHECK_SECONDS', '0', 'a whole number of seconds from 1 to 86400'],
    ['PUSHLEFT_AGENT_STOP_GRACE_SECONDS', '1.5', 'a whole number of seconds from 0 to 3600'],
  ])('%s=%s: says what it expects', (name, value, expects) => {
    expect(readConfig({ ...COMPLETE, [name]: value })).toEqual({ ok: false, problem: `${name} must be ${expects}` });
  });
});
