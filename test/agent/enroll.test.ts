import { execFile } from 'node:child_process';
import { access, readdir, readFile, readlink, stat, unlink, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { createAuthority } from './support/authority.ts';
import { freshHost, type Host, NODE_ID, SECRET } from './support/host.ts';
import { certified, enrollingWith, problem, type Reply } from './support/stub-gateway.ts';

const run = promisify(execFile);

async function enrolls(host: Host, ...options: readonly string[]) {
  await using agent = host.start('enroll', ...options);
  const code = await agent.exited;
  return { code, log: agent.stderr() };
}

const mode = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);
const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

/** Answers each request with the next reply, the last one for ever. */
function script(...replies: readonly [Reply, ...Reply[]]): () => Reply {
  let next = 0;
  return () => replies[Math.min(next++, replies.length - 1)] ?? 'drop';
}

describe('pushleft-agent enroll', () => {
  test('a fresh host: one generation, private files, no secret left, and openssl accepts the chain', async () => {
    await using host = await freshHost();
    const { code, log } = await enrolls(host);
    expect({ code, log }).toMatchObject({ code: 0 });
    const pki = `${host.stateDir}/pki`;
    expect(await readlink(`${pki}/current`)).toBe('generations/1');
    expect(await readdir(pki)).toEqual(['current', 'generations']);
    expect(await readdir(`${pki}/generations`)).toEqual(['1']);
    expect(await readdir(`${pki}/current/`)).toEqual([
      'certificate.pem',
      'enrollment.sha256',
      'gateway-ca.pem',
      'key.pem',
    ]);
    for (const file of ['certificate.pem', 'gateway-ca.pem', 'key.pem']) {
      expect(await mode(`${pki}/current/${file}`)).toBe('600');
    }
    for (const folder of [pki, `${pki}/generations`, `${pki}/generations/1`]) expect(await mode(folder)).toBe('700');
    expect(await readdir(host.stateDir)).toEqual(['pki']);
    await run('openssl', ['verify', '-CAfile', `${pki}/current/gateway-ca.pem`, `${pki}/current/certificate.pem`]);
  });

  test('enrolled: a second run asks nothing and changes nothing', async () => {
    await using host = await freshHost();
    await enrolls(host);
    const before = await readFile(`${host.stateDir}/pki/current/key.pem`, 'utf8');
    let asked = 0;
    host.gateway.enroll = () => {
      asked += 1;
      return problem(401, 'enrollment_refused');
    };
    expect((await enrolls(host)).code).toBe(0);
    expect(asked).toBe(0);
    expect(await readFile(`${host.stateDir}/pki/current/key.pem`, 'utf8')).toBe(before);
  });

  test('enrolled, a secret left over by a crash: it is removed', async () => {
    await using host = await freshHost();
    await enrolls(host);
    await writeFile(`${host.stateDir}/enrollment-secret`, SECRET, { mode: 0o600 });
    expect((await enrolls(host)).code).toBe(0);
    expect(await exists(`${host.stateDir}/enrollment-secret`)).toBe(false);
  });

  test('401: final, exit 1, and the secret stays for whoever looks into it', async () => {
    await using host = await freshHost();
    let asked = 0;
    host.gateway.enroll = () => {
      asked += 1;
      return problem(401, 'enrollment_refused');
    };
    const { code, log } = await enrolls(host);
    expect(code).toBe(1);
    expect(asked).toBe(1);
    expect(log).toContain('the secret is wrong, expired or used');
    expect(await exists(`${host.stateDir}/enrollment-secret`)).toBe(true);
  });

  test('400 csr_subject_mismatch: final, exit 1, named in the log', async () => {
    await using host = await freshHost();
    host.gateway.enroll = script(problem(400, 'csr_subject_mismatch'));
    const { code, log } = await enrolls(host);
    expect(code).toBe(1);
    expect(log).toContain('400 csr_subject_mismatch');
  });

  test('429, then 503, then a dropped connection, then 200: enrolled, with one key throughout', async () => {
    await using host = await freshHost();
    const enrolling = enrollingWith(host.authority, SECRET);
    const busy = script(
      problem(429, 'rate_limited', {}, { 'retry-after': '1' }),
      problem(503, 'unavailable'),
      'drop',
      'hold',
    );
    let asked = 0;
    host.gateway.enroll = async (received) => {
      const reply = await enrolling.behaviour(received);
      asked += 1;
      return asked < 4 ? busy() : reply;
    };
    expect((await enrolls(host)).code).toBe(0);
    expect(asked).toBe(4);
    expect(enrolling.keys.size).toBe(1);
  });

  test('nobody answers within --wait: exit 3', async () => {
    await using host = await freshHost();
    await host.gateway.goAway();
    const { code, log } = await enrolls(host, '--wait', '0');
    expect(code).toBe(3);
    expect(log).toContain('ECONNREFUSED');
  });

  test('a listener that the bootstrap CA does not vouch for: exit 3, and it never sees the secret', async () => {
    await using host = await freshHost();
    const stranger = await createAuthority(`${host.stateDir}/..`, 'Stranger');
    await writeFile(host.authority.caFile, stranger.caPem);
    let asked = 0;
    host.gateway.enroll = () => {
      asked += 1;
      return 'drop';
    };
    expect((await enrolls(host, '--wait', '0')).code).toBe(3);
    expect(asked).toBe(0);
  });

  test.each(['hold', 'drop'] as const)(
    'killed while the answer is on its way (%s): the next run enrols with the same key',
    async (lost) => {
      await using host = await freshHost();
      const enrolling = enrollingWith(host.authority, SECRET);
      let granted = false;
      host.gateway.enroll = async (received) => {
        await enrolling.behaviour(received);
        granted = true;
        return lost;
      };
      {
        await using agent = host.start('enroll');
        await waitFor(() => granted, { what: 'the gateway has granted' });
        agent.child.kill('SIGKILL');
        expect(await agent.exited).toBe('SIGKILL');
      }
      host.gateway.enroll = enrolling.behaviour;
      expect((await enrolls(host)).code).toBe(0);
      expect(enrolling.keys.size).toBe(1);
      expect(await readdir(`${host.stateDir}/pki/generations`)).toEqual(['1']);
    },
  );

  test('two enrolments at once: both succeed, with one key', async () => {
    await using host = await freshHost();
    const enrolling = enrollingWith(host.authority, SECRET);
    host.gateway.enroll = enrolling.behaviour;
    const codes = await Promise.all([enrolls(host), enrolls(host)]);
    expect(codes.map(({ code }) => code)).toEqual([0, 0]);
    expect(enrolling.keys.size).toBe(1);
  });

  test('a certificate for another key: refused, nothing is staged', async () => {
    await using host = await freshHost();
    await using other = await freshHost();
    let stolen = '';
    other.gateway.enroll = ({ body }) => {
      stolen = body.csr_pem;
      return problem(401, 'enrollment_refused');
    };
    await enrolls(other);
    host.gateway.enroll = async () => certified(host.authority, await host.authority.issue(stolen));
    const { code, log } = await enrolls(host);
    expect(code).toBe(1);
    expect(log).toContain('it is for another key');
    expect(await exists(`${host.stateDir}/pki/current`)).toBe(false);
  });

  test('a certificate by a CA that is not in the bundle: refused', async () => {
    await using host = await freshHost();
    const stranger = await createAuthority(`${host.stateDir}/..`, 'Stranger');
    host.gateway.enroll = async ({ body }) => certified(host.authority, await stranger.issue(body.csr_pem));
    const { code, log } = await enrolls(host);
    expect(code).toBe(1);
    expect(log).toContain('no CA of the bundle has issued it');
  });

  test('no secret and no identity: exit 1, says so', async () => {
    await using host = await freshHost();
    await unlink(`${host.stateDir}/enrollment-secret`);
    const { code, log } = await enrolls(host);
    expect(code).toBe(1);
    expect(log).toContain('there is no enrolment secret');
  });

  test('an expired identity and no secret: exit 1, says both', async () => {
    await using host = await freshHost();
    host.gateway.enroll = async ({ body }) =>
      certified(host.authority, await host.authority.issue(body.csr_pem, { daysAgo: 2, days: 1 }));
    await enrolls(host);
    const { code, log } = await enrolls(host);
    expect(code).toBe(1);
    expect(log).toMatch(/the staged certificate expired at .* there is no enrolment secret/);
  });

  test('enrolled, --replace and a new secret: enrols anew as the next generation', async () => {
    await using host = await freshHost();
    await enrolls(host);
    const secret = 'c'.repeat(64);
    host.gateway.enroll = enrollingWith(host.authority, secret).behaviour;
    await writeFile(`${host.stateDir}/enrollment-secret`, secret, { mode: 0o600 });
    expect((await enrolls(host, '--replace')).code).toBe(0);
    expect(await readlink(`${host.stateDir}/pki/current`)).toBe('generations/2');
    expect(await exists(`${host.stateDir}/enrollment-secret`)).toBe(false);
  });

  test('an expired identity and a new secret: enrols anew as the next generation', async () => {
    await using host = await freshHost();
    host.gateway.enroll = async ({ body }) =>
      certified(host.authority, await host.authority.issue(body.csr_pem, { daysAgo: 2, days: 1 }));
    await enrolls(host);
    const secret = 'b'.repeat(64);
    await writeFile(`${host.stateDir}/enrollment-secret`, secret, { mode: 0o600 });
    host.gateway.enroll = enrollingWith(host.authority, secret).behaviour;
    expect((await enrolls(host)).code).toBe(0);
    expect(await readlink(`${host.stateDir}/pki/current`)).toBe('generations/2');
    expect(await readdir(`${host.stateDir}/pki/generations`)).toEqual(['2']);
  });

  test('all through: the secret and the key are in no log line, no argument and no variable', async () => {
    await using host = await freshHost();
    const enrolling = enrollingWith(host.authority, SECRET);
    let processView = '';
    host.gateway.enroll = async (received) => {
      const pid = agent.child.pid;
      processView = await readFile(`/proc/${pid}/cmdline`, 'utf8');
      processView += await readFile(`/proc/${pid}/environ`, 'utf8');
      return enrolling.behaviour(received);
    };
    await using agent = host.start('enroll');
    expect(await agent.exited).toBe(0);
    const key = await readFile(`${host.stateDir}/pki/current/key.pem`, 'utf8');
    const said = `${processView}${agent.stderr()}${agent.stdout()}`;
    expect(processView).toContain(NODE_ID);
    for (const canary of [SECRET, Buffer.from(SECRET).toString('base64'), key.split('\n')[1] ?? '']) {
      expect(said).not.toContain(canary);
    }
  });
});
