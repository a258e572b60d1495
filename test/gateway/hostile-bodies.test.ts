import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCsr } from '../../agent/csr.ts';
import { AgentClient, leaseRequest, SUCCEEDED } from './support/client.ts';
import { newKey, startFleet, type TestAgent, type TestFleet } from './support/fleet.ts';

const BODIES = 10_000;
/** Requests on their way at once. */
const AT_ONCE = 50;
const SEED = Number(process.env['HOSTILE_SEED'] ?? randomBytes(4).readUInt32LE() & 0x7fffffff);

let fleet: TestFleet;
let identity: TestAgent;
beforeAll(async () => {
  fleet = await startFleet();
  identity = await fleet.agent();
});
afterAll(() => fleet[Symbol.asyncDispose]());

interface Attack {
  readonly listener: 'agent' | 'enroll';
  readonly method: string;
  readonly path: string;
  readonly body: string | Buffer;
  readonly headers: Record<string, string>;
}

const jobId = randomUUID();
const honest = [
  { listener: 'agent', path: '/v1/agent/lease', body: leaseRequest() },
  { listener: 'agent', path: `/v1/agent/jobs/${jobId}/heartbeat`, body: { lease_token: 'a'.repeat(43) } },
  { listener: 'agent', path: `/v1/agent/jobs/${jobId}/complete`, body: { lease_token: 'a'.repeat(43), ...SUCCEEDED } },
  { listener: 'agent', path: `/v1/agent/jobs/${jobId}/source`, body: {} },
  { listener: 'agent', path: '/v1/agent/identity', body: {} },
  { listener: 'agent', path: '/v1/agent/certificate/renew', body: { csr_pem: createCsr(jobId, newKey()) } },
  { listener: 'agent', path: '/healthz', body: {} },
  {
    listener: 'enroll',
    path: '/v1/enroll',
    body: { node_id: jobId, enrollment_secret: 'ab'.repeat(32), csr_pem: createCsr(jobId, newKey()) },
  },
] as const;

/** Values that have hurt servers before, and some that are well-formed and wrong. */
const poison = fc.constantFrom<unknown>(
  'cd'.repeat(32),
  randomUUID(),
  'b'.repeat(43),
  null,
  true,
  0,
  -1,
  1e308,
  -0,
  2 ** 53,
  '',
  '\0',
  'a\0b',
  '\ud800',
  '\udfff x',
  '🦀',
  '\u202e',
  '../../etc/passwd',
  "'; DROP SCHEMA fleet CASCADE; --",
  '$1',
  '{}',
  '%s%n',
  '{"a":1}',
  'x'.repeat(5_000),
  [],
  {},
  [[[[]]]],
  { __proto__: null },
  JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":{}}}'),
);

/** An honest body with some of its values or keys replaced, anywhere in it. */
function mutated(body: object): fc.Arbitrary<unknown> {
  const value = fc.oneof(
    poison,
    fc.json().map((text) => JSON.parse(text) as unknown),
    fc.string({ unit: 'binary' }),
  );
  return fc
    .tuple(fc.array(fc.tuple(fc.nat(), value), { minLength: 1, maxLength: 4 }), fc.option(fc.string()))
    .map(([changes, extra]) => {
      const copy = structuredClone(body) as Record<string, unknown>;
      for (const [at, replacement] of changes) replaceLeaf(copy, at, replacement);
      if (extra !== null) replaceKey(copy, extra, extra);
      return copy;
    });
}

function replaceLeaf(root: Record<string, unknown>, at: number, replacement: unknown): void {
  const places: (readonly [Record<string, unknown>, string])[] = [];
  const walk = (node: unknown) => {
    if (typeof node !== 'object' || node === null) return;
    for (const [key, child] of Object.entries(node)) {
      places.push([node as Record<string, unknown>, key]);
      walk(child);
    }
  };
  walk(root);
  const place = places[at % Math.max(1, places.length)];
  if (place === undefined) return;
  replaceKey(...place, replacement);
}

/** Defined, not assigned: a key `__proto__` must attack the gateway and not this test. */
function replaceKey(node: object, key: string, replacement: unknown): void {
  const value = structuredClone(replacement);
  Object.defineProperty(node, key, { value, enumerable: true, configurable: true, writable: true });
}

const attack: fc.Arbitrary<Attack> = fc.constantFrom(...honest).chain(({ listener, path, body }) =>
  fc.record({
    listener: fc.constant(listener),
    method: fc.oneof(
      { weight: 8, arbitrary: fc.constant('POST') },
      fc.constantFrom('GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'),
    ),
    path: fc.oneof(
      { weight: 6, arbitrary: fc.constant(path) },
      fc.webPath().map((text) => `${path}${text.startsWith('/') ? text : `/${text}`}`),
      fc
        .string({ unit: 'binary', maxLength: 200 })
        .map((text) => `/v1/agent/jobs/${encodeURIComponent(text.toWellFormed())}/heartbeat`),
      fc.constantFrom(
        '/v1/agent/jobs/%00/heartbeat',
        '/v1/agent/jobs/%ff/complete',
        '/v1/agent/jobs/%2e%2e/complete',
        '/%',
        '/?%00',
      ),
    ),
    body: fc.oneof(
      { weight: 6, arbitrary: mutated(body).map((value) => JSON.stringify(value)) },
      fc.constant(JSON.stringify(body)), // well-formed, and still nobody's job or secret
      fc.string({ unit: 'binary' }),
      fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes)),
      fc.nat(40_000).map((depth) => '['.repeat(depth)),
      fc.nat(20_000).map((depth) => `${'{"a":'.repeat(depth % 9_000)}1${'}'.repeat(depth % 9_000)}`),
      fc.constantFrom('', 'null', '"', '[]', '1e999', `"${'x'.repeat(70_000)}"`),
    ),
    headers: fc.record({
      'content-type': fc.constantFrom(
        'application/json',
        'text/plain',
        'multipart/form-data',
        'application/json; charset=utf-16',
      ),
      'x-request-id': fc.oneof(fc.uuid(), fc.constantFrom('', 'x'.repeat(500), '${jndi:ldap://x}')),
    }),
  }),
);

const INTERNALS = /at .+:\d+:\d+|node_modules|\/src\/|SELECT |relation "|pg_|postgres|Error:|valibot|ECONN|stack/;
const ALLOWED = new Set([200, 400, 401, 404, 409, 413, 429]);

test(`${BODIES} hostile bodies on all routes (seed ${SEED}): no 5xx, no crash, no internals in an answer`, async () => {
  console.log(`hostile bodies: HOSTILE_SEED=${SEED}`);
  const attacks = fc.sample(attack, { numRuns: BODIES, seed: SEED });
  using agents = new AgentClient(fleet.gateway.agentUrl, identity, AT_ONCE);
  using strangers = new AgentClient(fleet.gateway.enrollUrl, { ca: fleet.pki.bundlePem }, AT_ONCE);
  const statuses = new Map<number, number>();
  const one = async ({ listener, ...sent }: Attack) => {
    const answered = await send(listener === 'agent' ? agents : strangers, sent);
    statuses.set(answered.status, (statuses.get(answered.status) ?? 0) + 1);
    expect({ sent, status: ALLOWED.has(answered.status) ? 'allowed' : answered.status }).toEqual({
      sent,
      status: 'allowed',
    });
    expect(answered.text).not.toMatch(INTERNALS);
    if (answered.status !== 200) expect(answered.body).toMatchObject({ error: expect.stringMatching(/^[a-z_]+$/) });
  };
  await inParallel(attacks, one);
  // The attacks reach what they are meant for: schemas, sizes, leases and secrets.
  for (const status of [200, 400, 401, 404, 409, 413])
    expect([status, (statuses.get(status) ?? 0) > 0]).toEqual([status, true]);
  expect((await agents.lease()).status).toBe(200);
  expect(fleet.logLines.filter((line) => line.includes('"level":50'))).toEqual([]);
}, 300_000);

/** A connection may be closed by an answer to its last request just when the next one is sent: that one is sent again. */
async function send(client: AgentClient, { path, ...sent }: Omit<Attack, 'listener'>) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await client.send(path, sent);
    } catch (error) {
      if (attempt === 5) throw error;
    }
  }
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const item of rest) await work(item);
    }),
  );
}
