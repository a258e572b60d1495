import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { CSR_REFUSALS } from '../../src/pki/csr.ts';
import { EnrollRequest } from '../../src/protocol/enroll.ts';
import { CSR_ERROR_CODES, ErrorBody, GATEWAY_ERROR_CODES } from '../../src/protocol/errors.ts';
import { IdentityResponse } from '../../src/protocol/identity.ts';
import { CompleteRequest, HeartbeatRequest } from '../../src/protocol/jobs.ts';
import { LeaseRefusal, LeaseRequest, LeaseResponse } from '../../src/protocol/lease.ts';
import { RenewRequest } from '../../src/protocol/renew.ts';

const HOST = {
  cpu_count: 4,
  memory_mb: 8_192,
  data_disk_free_gb: 80,
  kernel: '6.8.0-generic',
  docker_version: '29.0.1',
  bridge_netfilter: true,
};
const LEASE = {
  request_id: '0b7e1c5e-0d0c-4a35-9c8e-3f1d2a4b5c6d',
  agent_version: '0.1.0',
  capabilities: { kinds: ['diagnose_host'], host: HOST },
};
const TOKEN = 'token-0123456789';

const lease = (change: object) => v.is(LeaseRequest, { ...LEASE, ...change });
const host = (change: object) => lease({ capabilities: { kinds: [], host: { ...HOST, ...change } } });
const kinds = (names: unknown) => lease({ capabilities: { kinds: names, host: HOST } });

describe('LeaseRequest', () => {
  test('without the optional fields, and with them: accepted', () => {
    expect(lease({})).toBe(true);
    expect(lease({ log_head: '1.42.c0ffee', wait_seconds: 30, boot_id: LEASE.request_id })).toBe(true);
    expect(host({ data_disk_free_gb: null, docker_version: null, bridge_netfilter: null })).toBe(true);
  });

  test.each([
    ['an unknown field', lease({ node_id: 'app-1' })],
    ['an unknown host fact', host({ gpu: 1 })],
    ['a request id that is no UUID', lease({ request_id: 'x' })],
    ['a boot id that is no UUID', lease({ boot_id: 'x' })],
    ['a wait of 31 s', lease({ wait_seconds: 31 })],
    ['a wait of half a second', lease({ wait_seconds: 0.5 })],
    ['a version with a space', lease({ agent_version: '0.1 0' })],
    ['NUL in the kernel', host({ kernel: '6.8\u0000' })],
    ['a lone surrogate in the Docker version', host({ docker_version: '29\uD800' })],
    ['no processor', host({ cpu_count: 0 })],
    ['free space below zero', host({ data_disk_free_gb: -1 })],
    ['a kind named twice', kinds(['a', 'a'])],
    ['65 kinds', kinds(Array.from({ length: 65 }, (_, index) => `k${index}`))],
    ['a log head with a line end', lease({ log_head: 'a\nb' })],
    ['an optional field that is null', lease({ log_head: null })],
  ])('%s: refused', (_, accepted) => expect(accepted).toBe(false));
});

describe('EnrollRequest', () => {
  const request = {
    node_id: '0b7e1c5e-0d0c-4a35-9c8e-3f1d2a4b5c6d',
    enrollment_secret: 'a'.repeat(64),
    csr_pem: '-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n',
  };
  const enroll = (change: object) => v.is(EnrollRequest, { ...request, ...change });

  test('complete: accepted, a UUID as node too', () => {
    expect(enroll({})).toBe(true);
    expect(enroll({ node_id: '0b7e1c5e-0d0c-4a35-9c8e-3f1d2a4b5c6d' })).toBe(true);
  });

  test.each([
    ['a node id of 64 characters', enroll({ node_id: 'a'.repeat(64) })],
    ['a node id with a capital', enroll({ node_id: 'App' })],
    ['a node id with a dot', enroll({ node_id: 'a.b' })],
    ['a node id that ends in a dash', enroll({ node_id: 'a-' })],
    ['a secret of 63 digits', enroll({ enrollment_secret: 'a'.repeat(63) })],
    ['a secret in capitals', enroll({ enrollment_secret: 'A'.repeat(64) })],
    ['a secret and a line end', enroll({ enrollment_secret: `${'a'.repeat(64)}\n` })],
    ['an unknown field', enroll({ admin: true })],
    ['NUL in the request', enroll({ csr_pem: `${request.csr_pem}\u0000` })],
    ['a request of more than 16 KiB', enroll({ csr_pem: 'M'.repeat(16 * 1024 + 1) })],
  ])('%s: refused', (_, accepted) => expect(accepted).toBe(false));
});

describe('RenewRequest', () => {
  const csr_pem = '-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n';
  test('a certificate request alone: accepted', () => expect(v.is(RenewRequest, { csr_pem })).toBe(true));
  test.each([
    ['a node id beside it', { csr_pem, node_id: LEASE.request_id }],
    ['NUL in the request', { csr_pem: `${csr_pem}\u0000` }],
    ['a request of more than 16 KiB', { csr_pem: 'M'.repeat(16 * 1024 + 1) }],
    ['nothing', {}],
  ])('%s: refused', (_, request) => expect(v.is(RenewRequest, request)).toBe(false));
});

describe('HeartbeatRequest and CompleteRequest', () => {
  const failure = { code: 'work_failed', detail: 'it did' };
  test.each([
    ['a heartbeat', v.is(HeartbeatRequest, { lease_token: TOKEN })],
    [
      'a success with any result',
      v.is(CompleteRequest, { lease_token: TOKEN, outcome: 'succeeded', result: { a: 1 } }),
    ],
    ['a failure', v.is(CompleteRequest, { lease_token: TOKEN, outcome: 'failed', result: failure })],
  ])('%s: accepted', (_, accepted) => expect(accepted).toBe(true));

  test.each([
    ['a short token', v.is(HeartbeatRequest, { lease_token: 'short' })],
    ['a success without a result', v.is(CompleteRequest, { lease_token: TOKEN, outcome: 'succeeded' })],
    ['another outcome', v.is(CompleteRequest, { lease_token: TOKEN, outcome: 'lost', result: failure })],
    [
      'a failure of an unknown code',
      v.is(CompleteRequest, { lease_token: TOKEN, outcome: 'failed', result: { ...failure, code: 'tired' } }),
    ],
    [
      'an unknown field',
      v.is(CompleteRequest, { lease_token: TOKEN, outcome: 'failed', result: failure, node_id: 'a' }),
    ],
  ])('%s: refused', (_, accepted) => expect(accepted).toBe(false));
});

describe('answers', () => {
  test('fields of a newer gateway: dropped, not refused', () =>
    expect(v.parse(LeaseResponse, { job: null, target_version: null, log_head: 'h', more: 1 })).toEqual({
      job: null,
      target_version: null,
      log_head: 'h',
    }));

  test('identity: without a word on renewal, with one, and with a reason of a newer gateway, which cannot wait', () => {
    const identity = {
      node_id: LEASE.request_id,
      status: 'active',
      certificate: {
        fingerprint_sha256: 'a'.repeat(64),
        serial: '0a',
        not_before: '2026-01-01T00:00:00.000Z',
        not_after: '2026-01-02T00:00:00.000Z',
      },
      trust_bundle_sha256: 'b'.repeat(64),
    };
    const renewal = (said?: object) =>
      v.parse(IdentityResponse, said === undefined ? identity : { ...identity, renewal: said }).renewal;
    expect(renewal()).toBeUndefined();
    expect(renewal({ due: false, reason: null })).toEqual({ due: false, reason: null });
    expect(renewal({ due: true, reason: 'lifetime' })).toEqual({ due: true, reason: 'lifetime' });
    expect(renewal({ due: true, reason: 'weak_key' })).toEqual({ due: true, reason: 'issuer' });
  });

  test('403: told apart by its code, and each carries what it must', () => {
    const message = 'no';
    expect(v.is(LeaseRefusal, { error: 'node_not_active', message, status: 'draining' })).toBe(true);
    expect(v.is(LeaseRefusal, { error: 'node_not_active', message })).toBe(false);
    expect(v.is(LeaseRefusal, { error: 'node_lost', message, cleanup: [] })).toBe(true);
    expect(v.is(LeaseRefusal, { error: 'node_lost', message })).toBe(false);
  });

  test('an error code that is not in the list: refused', () => {
    expect(v.is(ErrorBody, { error: 'not_found', message: 'no such route' })).toBe(true);
    expect(v.is(ErrorBody, { error: 'teapot', message: 'short and stout' })).toBe(false);
    expect(new Set(GATEWAY_ERROR_CODES).size).toBe(GATEWAY_ERROR_CODES.length);
  });
});

describe('CSR_ERROR_CODES', () => {
  test('they are the codes of src/pki, no more and no fewer', () =>
    expect(new Set<string>(CSR_ERROR_CODES)).toEqual(new Set(Object.keys(CSR_REFUSALS))));
});

describe('every request schema', () => {
  test.each([
    ['LeaseRequest', LeaseRequest],
    ['EnrollRequest', EnrollRequest],
    ['RenewRequest', RenewRequest],
    ['HeartbeatRequest', HeartbeatRequest],
    ['CompleteRequest', CompleteRequest],
  ])('%s: any JSON is answered without throwing', (_, schema) =>
    fc.assert(fc.property(fc.jsonValue(), (value) => typeof v.safeParse(schema, value).success === 'boolean')),
  );
});
