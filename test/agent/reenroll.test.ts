import { access, chmod, readdir, rm, writeFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createAuthority } from './support/authority.ts';
import { enrolledHost, freshHost, type Host, NODE_ID } from './support/host.ts';
import { certified, enrollingWith, problem } from './support/stub-gateway.ts';

const SECRET = 'b0'.repeat(32);

/** What `fleet reenroll` would write for this host, and the gateway that awaits it. */
async function withBundle(host: Host, change: object = {}) {
  const bundle = {
    version: 1,
    node_id: NODE_ID,
    enrollment_secret: SECRET,
    ca_pem: host.authority.caPem,
    enroll_url: host.gateway.enrollUrl,
    gateway_url: host.gateway.gatewayUrl,
    expires_at: '2026-01-01T00:15:00.000Z',
    ...change,
  };
  const file = `${host.stateDir}/carried.json`;
  await rm(file, { force: true });
  await writeFile(file, JSON.stringify(bundle), { mode: 0o600 });
  const enrolling = enrollingWith(host.authority, SECRET);
  let asked = 0;
  host.gateway.enroll = (received) => {
    asked += 1;
    return enrolling.behaviour(received);
  };
  return { file, asked: () => asked };
}

async function enrolls(host: Host, file: string, more: Readonly<Record<string, string>> = {}) {
  await using agent = host.startWith(more, 'enroll', '--bundle', file, '--wait', '0');
  return { code: await agent.exited, stderr: agent.stderr() };
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );
const generations = (host: Host) => readdir(`${host.stateDir}/pki/generations`);

/** A host whose only certificate ran out a day ago, and which holds no secret. */
async function expiredHost(): Promise<Host> {
  const host = await freshHost();
  host.gateway.enroll = async ({ body }) =>
    certified(host.authority, await host.authority.issue(body.csr_pem, { daysAgo: 2, days: 1 }));
  await using agent = host.start('enroll');
  await agent.exited;
  return host;
}

describe('pushleft-agent enroll --bundle', () => {
  test('a good identity and files of another CA: replaced by what the bundle says; bundle, secret and former generation are gone', async () => {
    await using host = await enrolledHost();
    const stranger = await createAuthority(`${host.stateDir}/..`, 'Former CA');
    const { file } = await withBundle(host);
    const { code, stderr } = await enrolls(host, file, { PUSHLEFT_AGENT_CA: stranger.caFile });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).not.toContain(SECRET);
    expect(await readdir(host.stateDir)).toEqual(['pki']);
    expect(await generations(host)).toEqual(['2']);
  });

  test('an agent that runs with an expired certificate: says what to do, and takes the new identity up', async () => {
    await using host = await expiredHost();
    await using agent = host.start('run');
    expect(await agent.logged('the staged certificate has expired, or the clock is ahead')).toMatchObject({
      remedy: 'carry a bundle of `fleet reenroll` here and run pushleft-agent enroll --bundle',
    });
    await agent.logged('lease not answered, trying again');
    const { file } = await withBundle(host);
    expect((await enrolls(host, file)).code).toBe(0);
    expect(await agent.logged('another identity is staged, using it')).toMatchObject({ generation: 2 });
    await agent.logged('leasing again');
  });
});

test('run with an expired certificate and a secret: says to enrol', async () => {
  await using host = await expiredHost();
  await writeFile(`${host.stateDir}/enrollment-secret`, SECRET, { mode: 0o600 });
  await using agent = host.start('run');
  expect(await agent.logged('the staged certificate has expired, or the clock is ahead')).toMatchObject({
    remedy: 'there is an enrolment secret: run pushleft-agent enroll',
  });
});

describe('a bundle that is not used: the identity in force stays', () => {
  let host: Host;
  beforeAll(async () => {
    host = await enrolledHost();
  });
  afterAll(() => host[Symbol.asyncDispose]());
  afterEach(() => access(`${host.stateDir}/pki/current/certificate.pem`));

  test('a listener that the CA of the bundle does not vouch for: exit 3, it never sees the secret, and the bundle stays', async () => {
    const stranger = await createAuthority(`${host.stateDir}/..`, 'Stranger');
    const { file, asked } = await withBundle(host, { ca_pem: stranger.caPem });
    expect((await enrolls(host, file)).code).toBe(3);
    expect(asked()).toBe(0);
    expect(await exists(file)).toBe(true);
  });

  test('a used or expired secret: exit 1, and the bundle stays', async () => {
    const { file } = await withBundle(host);
    host.gateway.enroll = () => problem(401, 'enrollment_refused');
    expect((await enrolls(host, file)).code).toBe(1);
    expect(await exists(file)).toBe(true);
  });

  test('a file that others may read: exit 1, named with its mode, and nothing is asked', async () => {
    const { file, asked } = await withBundle(host);
    await chmod(file, 0o644);
    const { code, stderr } = await enrolls(host, file);
    expect(code).toBe(1);
    expect(stderr).toContain('carried.json (mode 644) is open to others');
    expect(asked()).toBe(0);
  });

  test("another node's bundle: exit 1, and nothing is asked", async () => {
    const { file, asked } = await withBundle(host, { node_id: '10000000-0000-4000-8000-00000000000b' });
    const { code, stderr } = await enrolls(host, file);
    expect(code).toBe(1);
    expect(stderr).toContain('is for another node than PUSHLEFT_NODE_ID');
    expect(asked()).toBe(0);
  });

  test.each([
    ['a version of the future', { version: 2 }],
    ['no certificate', { ca_pem: '-----BEGIN NOTHING-----\n' }],
    ['http', { enroll_url: 'http://127.0.0.1:1' }],
  ])('%s: one line that does not show the secret, exit 2', async (_, change) => {
    const { file } = await withBundle(host, change);
    const { code, stderr } = await enrolls(host, file);
    expect(code).toBe(2);
    expect(stderr).toBe(`pushleft-agent: --bundle cannot be used: ${file} is not what fleet reenroll writes\n`);
  });

  test('no such file: exit 2', async () => {
    expect((await enrolls(host, '/nowhere/bundle.json')).code).toBe(2);
  });
});
