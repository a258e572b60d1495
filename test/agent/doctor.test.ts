import { chmod, cp, mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { DOCTOR_CHECKS, type DoctorCheck, DoctorReport } from '../../src/protocol/job-kinds/diagnose-host.ts';
import { startDockerDaemon } from './support/docker-daemon.ts';
import { enrolledHost, freshHost, type Host, SECRET } from './support/host.ts';
import { certified, problem } from './support/stub-gateway.ts';

/** Runs `doctor --json` and answers its exit code and findings by check. */
async function doctor(host: Host, more: Readonly<Record<string, string>> = {}) {
  await using agent = host.startWith(more, 'doctor', '--json');
  const code = await agent.exited;
  const report = v.parse(DoctorReport, JSON.parse(agent.stdout()));
  const found = (check: DoctorCheck) => {
    const { status, detail } = report.checks.find((finding) => finding.check === check) ?? {};
    return `${status}: ${detail}`;
  };
  return { code, report, found };
}

describe('pushleft-agent doctor', () => {
  test('an enrolled host: every check passes, in order, exit 0', async () => {
    await using host = await enrolledHost();
    const { code, report } = await doctor(host);
    expect(report.checks.map(({ check, status }) => [check, status])).toEqual(
      DOCTOR_CHECKS.map((check) => [check, 'pass']),
    );
    expect(code).toBe(0);
  });

  test('without --json: a line for each check, status first', async () => {
    await using host = await enrolledHost();
    await using agent = host.start('doctor');
    expect(await agent.exited).toBe(0);
    expect(agent.stdout()).toMatch(/^pass {2}state_files {7}generation 1 is staged\n/);
    expect(agent.stdout().split('\n')).toHaveLength(DOCTOR_CHECKS.length + 2);
  });

  test('not enrolled: says what to run, exit 1', async () => {
    await using host = await freshHost();
    const { code, found } = await doctor(host);
    expect(code).toBe(1);
    expect(found('state_files')).toBe('fail: no identity is staged: run pushleft-agent enroll');
    expect(found('gateway')).toBe('fail: no identity to present');
    expect(found('clock')).toBe('pass: agrees with the gateway');
  });

  test('a key open to others: named with its mode', async () => {
    await using host = await enrolledHost();
    await chmod(`${host.stateDir}/pki/generations/1/key.pem`, 0o604);
    const { code, found } = await doctor(host);
    expect(code).toBe(1);
    expect(found('state_files')).toContain('key.pem (mode 604) is open to others');
  });

  test('a renewal between its steps: what is kept and what waits is named, and their keys are looked at too', async () => {
    await using host = await enrolledHost();
    const generations = `${host.stateDir}/pki/generations`;
    for (const number of [2, 3]) await cp(`${generations}/1`, `${generations}/${number}`, { recursive: true });
    await symlink('generations/2', `${host.stateDir}/pki/next`);
    await rename(`${host.stateDir}/pki/next`, `${host.stateDir}/pki/current`);
    expect((await doctor(host)).found('state_files')).toBe(
      'pass: generation 2 is staged; 1 is kept until it has leased; 3 waits for its certificate',
    );
    await chmod(`${generations}/3/key.pem`, 0o640);
    expect((await doctor(host)).found('state_files')).toMatch(/^fail: .*generations\/3\/key\.pem \(mode 640\)/);
  });

  test('a secret left over: a warning that does not show it, exit 0', async () => {
    await using host = await enrolledHost();
    await writeFile(`${host.stateDir}/enrollment-secret`, SECRET, { mode: 0o600 });
    const { code, report, found } = await doctor(host);
    expect(code).toBe(0);
    expect(found('state_files')).toMatch(/^warn: an enrolment secret is left over/);
    expect(JSON.stringify(report)).not.toContain(SECRET);
  });

  test.each([
    [-312_000, 'fail: the local clock is 312 s ahead of the gateway’s'],
    [312_000, 'fail: the local clock is 312 s behind the gateway’s'],
    [30_000, 'warn: the local clock is 30 s behind the gateway’s'],
  ])('a gateway whose clock differs by %i ms: named', async (offsetMs, expected) => {
    await using host = await enrolledHost();
    // Date is in whole seconds: on the whole second, the difference is one too.
    host.gateway.healthz = () => ({
      status: 200,
      body: {},
      headers: { date: new Date(Date.now() + offsetMs + 500).toUTCString() },
    });
    const { found } = await doctor(host);
    const seconds = Number(/(\d+) s/.exec(expected)?.[1]);
    const close = [seconds - 1, seconds, seconds + 1].map((value) =>
      expected.replace(/\d+ s/, `${value} s`).replace('’', "'"),
    );
    expect(close).toContain(found('clock'));
  });

  test('an expired certificate: named, and the gateway refuses it in TLS', async () => {
    await using host = await freshHost();
    host.gateway.enroll = async ({ body }) =>
      certified(host.authority, await host.authority.issue(body.csr_pem, { daysAgo: 2, days: 1 }));
    {
      await using agent = host.start('enroll');
      await agent.exited;
    }
    const { code, found } = await doctor(host);
    expect(code).toBe(1);
    expect(found('certificate')).toMatch(/^fail: expired at /);
    expect(found('gateway')).toMatch(/^fail: /);
    expect(found('clock')).toBe('pass: agrees with the gateway');
  });

  test('a certificate with a fifth of its life left: its renewal is overdue', async () => {
    await using host = await freshHost();
    host.gateway.enroll = async ({ body }) =>
      certified(host.authority, await host.authority.issue(body.csr_pem, { daysAgo: 0.8, days: 1 }));
    {
      await using agent = host.start('enroll');
      await agent.exited;
    }
    expect((await doctor(host)).found('certificate')).toMatch(
      /^warn: serial [0-9a-f]{12}, valid for 4\.\d h more; its renewal is overdue$/,
    );
  });

  test('the gateway gone: its check says why, the others are made all the same', async () => {
    await using host = await enrolledHost();
    await host.gateway.goAway();
    const { code, report, found } = await doctor(host);
    expect(code).toBe(1);
    expect(found('gateway')).toContain('ECONNREFUSED');
    expect(found('clock')).toBe('warn: the gateway named no time to compare with');
    expect(report.checks).toHaveLength(DOCTOR_CHECKS.length);
  });

  test('the gateway answers 503: its code is named', async () => {
    await using host = await enrolledHost();
    host.gateway.healthz = () => problem(503, 'unavailable');
    expect((await doctor(host)).found('gateway')).toBe('fail: answered 503 unavailable');
  });

  test('a name that does not resolve: named', async () => {
    await using host = await enrolledHost();
    const { found } = await doctor(host, { PUSHLEFT_GATEWAY_URL: 'https://gateway.invalid:8443' });
    expect(found('dns')).toMatch(/^fail: .*gateway\.invalid/);
  });

  test('the Docker runtime without volume, daemon and module: each one fails', async () => {
    await using host = await enrolledHost();
    await mkdir(`${host.stateDir}/data`);
    const { code, found } = await doctor(host, { PUSHLEFT_RUNTIME: 'docker' });
    expect(code).toBe(1);
    expect(found('data_mount')).toBe(`fail: ${host.stateDir}/data is not a mount point`);
    expect(found('docker')).toMatch(/^fail: .*no-docker\.sock does not answer: .*ENOENT/);
  });

  test('the Docker runtime with a daemon: its version', async () => {
    await using host = await enrolledHost();
    await using _daemon = await startDockerDaemon(`${host.stateDir}/no-docker.sock`, '{"Version":"29.0.1"}');
    expect((await doctor(host, { PUSHLEFT_RUNTIME: 'docker' })).found('docker')).toBe('pass: version 29.0.1');
  });
});
