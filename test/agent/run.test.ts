import { chmod, cp, readFile, rename, symlink, unlink } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { DOCTOR_CHECKS } from '../../src/protocol/job-kinds/diagnose-host.ts';
import { parseJobResult } from '../../src/protocol/job-kinds/registry.ts';
import type { CompleteRequest } from '../../src/protocol/jobs.ts';
import type { LeaseRequest } from '../../src/protocol/lease.ts';
import { waitFor } from '../support/wait-for.ts';
import { enrolledHost, freshHost, type Host, NODE_ID } from './support/host.ts';
import { grant, heartbeatFor, idle, problem } from './support/stub-gateway.ts';

/** Grants one job, then holds each lease request as a gateway without work does. Writes down what it is sent. */
function oneJob(host: Host, leaseMs = 60_000) {
  const seen = { leases: [] as LeaseRequest[], completions: [] as CompleteRequest[], names: [] as unknown[] };
  host.gateway.lease = ({ body, commonName }) => {
    seen.leases.push(body);
    seen.names.push(commonName);
    return seen.leases.length === 1 ? grant('20000000-0000-4000-8000-000000000001', leaseMs) : 'hold';
  };
  host.gateway.complete = ({ body }) => {
    seen.completions.push(body);
    return { status: 200, body: {} };
  };
  return seen;
}

/** The doctor's question for the gateway's health hangs, and with it the job. Answers when the agent gave it up. */
function hangingWork(host: Host) {
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  host.gateway.healthz = ({ closed }) => {
    started.resolve();
    closed.addEventListener('abort', () => ended.resolve());
    return 'hold';
  };
  return { started: started.promise, ended: ended.promise };
}

describe('pushleft-agent run', () => {
  test('a job: leased over mTLS as the node, done, its report handed in; SIGTERM while it waits: exit 0', async () => {
    await using host = await enrolledHost();
    const seen = oneJob(host);
    await using agent = host.start('run');
    await waitFor(() => seen.completions.length === 1, { what: 'the job is handed in', deadlineMs: 30_000 });
    await waitFor(() => seen.leases.length === 2, { what: 'the next lease is asked for' });
    agent.child.kill('SIGTERM');
    expect(await agent.exited).toBe(0);
    expect(seen.names).toEqual([NODE_ID, NODE_ID]);
    const [completion] = seen.completions;
    if (completion?.outcome !== 'succeeded') throw new Error(agent.stderr());
    const report = parseJobResult('diagnose_host', completion.result);
    expect(report.ok && report.value.checks.map(({ check }) => check)).toEqual([...DOCTOR_CHECKS]);
  });

  test('heartbeat answered 409: the work is ended at once, nothing is handed in, the next lease is asked for', async () => {
    await using host = await enrolledHost();
    const seen = oneJob(host, 3_000);
    const work = hangingWork(host);
    host.gateway.heartbeat = () => problem(409, 'lease_conflict');
    await using agent = host.start('run');
    await work.ended;
    expect(await agent.logged('lease lost, work ended')).toMatchObject({
      job: '20000000-0000-4000-8000-000000000001',
      why: 'conflict',
    });
    await waitFor(() => seen.leases.length === 2, { what: 'the next lease is asked for' });
    expect(seen.completions).toEqual([]);
  });

  test('SIGTERM during a job, no grace: the job is handed back, exit 0', async () => {
    await using host = await enrolledHost({ PUSHLEFT_AGENT_STOP_GRACE_SECONDS: '0' });
    const seen = oneJob(host);
    const work = hangingWork(host);
    await using agent = host.start('run');
    await work.started;
    agent.child.kill('SIGTERM');
    expect(await agent.exited).toBe(0);
    expect(seen.completions).toMatchObject([{ outcome: 'failed', result: { code: 'agent_stopping' } }]);
    expect(seen.leases).toHaveLength(1);
  });

  test('SIGKILL during a job, started again: leases as before', async () => {
    await using host = await enrolledHost();
    const seen = oneJob(host);
    const work = hangingWork(host);
    {
      await using agent = host.start('run');
      await work.started;
      agent.child.kill('SIGKILL');
      expect(await agent.exited).toBe('SIGKILL');
    }
    await using agent = host.start('run');
    await agent.logged('agent started');
    await waitFor(() => seen.leases.length === 2, { what: 'a lease after the restart' });
    expect(seen.leases[1]?.request_id).not.toBe(seen.leases[0]?.request_id);
  });

  test('the gateway gone for a while, and back on the same port: leases again within 30 s', async () => {
    await using host = await enrolledHost();
    let leases = 0;
    host.gateway.lease = () => {
      leases += 1;
      return idle();
    };
    await using agent = host.start('run');
    await agent.logged('leasing');
    await host.gateway.goAway();
    await agent.logged('lease not answered, trying again');
    const before = leases;
    await host.gateway.comeBack();
    await waitFor(() => leases > before, { what: 'a lease after the return', deadlineMs: 30_000 });
    await agent.logged('leasing again');
  });

  test('401, then another generation is staged by an enrolment: the same process leases with it', async () => {
    await using host = await enrolledHost();
    let refused = true;
    host.gateway.lease = () => (refused ? problem(401, 'certificate_unknown') : 'hold');
    await using agent = host.start('run');
    await agent.logged('the gateway does not accept the certificate; waiting for another identity');
    const pki = `${host.stateDir}/pki`;
    await cp(`${pki}/generations/1`, `${pki}/generations/2`, { recursive: true });
    await symlink('generations/2', `${pki}/next`);
    await rename(`${pki}/next`, `${pki}/current`);
    refused = false;
    expect(await agent.logged('another identity is staged, using it')).toMatchObject({ generation: 2 });
  });

  test('no identity: exit 1, says what to do', async () => {
    await using host = await freshHost();
    await using agent = host.start('run');
    expect(await agent.exited).toBe(1);
    expect(agent.stderr()).toContain('run pushleft-agent enroll first');
  });

  test('a key that the group may read: exit 1, names the file and its mode', async () => {
    await using host = await enrolledHost();
    await chmod(`${host.stateDir}/pki/generations/1/key.pem`, 0o640);
    await using agent = host.start('run');
    expect(await agent.exited).toBe(1);
    expect(agent.stderr()).toContain('key.pem (mode 640) is open to others');
  });

  test("another node's identity: exit 1", async () => {
    await using host = await enrolledHost();
    await using agent = host.startWith({ PUSHLEFT_NODE_ID: '10000000-0000-4000-8000-00000000000b' }, 'run');
    expect(await agent.exited).toBe(1);
    expect(agent.stderr()).toContain('it is for another node than PUSHLEFT_NODE_ID');
  });

  test('a link that leads elsewhere: exit 3, and nothing is followed', async () => {
    await using host = await enrolledHost();
    await unlink(`${host.stateDir}/pki/current`);
    await symlink('/etc', `${host.stateDir}/pki/current`);
    await using agent = host.start('run');
    expect(await agent.exited).toBe(3);
    expect(agent.stderr()).toContain('current does not point to a generation');
  });

  test('all through: neither the lease token nor the key is said or shown', async () => {
    await using host = await enrolledHost();
    const seen = oneJob(host, 3_000);
    host.gateway.heartbeat = () => heartbeatFor(3_000);
    host.gateway.complete = ({ body }) => {
      seen.completions.push(body);
      return seen.completions.length === 1 ? problem(503, 'unavailable') : { status: 200, body: {} };
    };
    await using agent = host.start('run');
    await waitFor(() => seen.completions.length === 2, { what: 'the job is handed in', deadlineMs: 30_000 });
    const commandLine = await readFile(`/proc/${agent.child.pid}/cmdline`, 'utf8');
    const key = await readFile(`${host.stateDir}/pki/current/key.pem`, 'utf8');
    for (const canary of [seen.completions[0]?.lease_token ?? '', key.split('\n')[1] ?? '']) {
      expect(canary).not.toBe('');
      expect(`${commandLine}${agent.stderr()}${agent.stdout()}`).not.toContain(canary);
    }
  });
});
