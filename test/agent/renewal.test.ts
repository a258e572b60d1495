import { readdir } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { GatewayClient } from '../../agent/gateway-client.ts';
import { GatewayConnection } from '../../agent/gateway-connection.ts';
import { IdentityStore } from '../../agent/identity-store.ts';
import { diskFs } from '../../agent/state-fs.ts';
import { systemTime } from '../../agent/time.ts';
import type { LeaseRequest } from '../../src/protocol/lease.ts';
import { waitFor } from '../support/wait-for.ts';
import { capturedLog } from './support/captured-log.ts';
import { enrolledHost, type Host, NODE_ID } from './support/host.ts';
import { grant, heartbeatFor, identified, idle, problem, type Reply, renewingBy } from './support/stub-gateway.ts';

const JOB_ID = '20000000-0000-4000-8000-000000000001';
const CHECKING = { PUSHLEFT_AGENT_RENEW_CHECK_SECONDS: '1' };
const LEASE: LeaseRequest = {
  request_id: '30000000-0000-4000-8000-000000000001',
  agent_version: '0.1.0',
  capabilities: {
    kinds: ['diagnose_host'],
    host: {
      cpu_count: 4,
      memory_mb: 8_192,
      data_disk_free_gb: null,
      kernel: '6.8.0-generic',
      docker_version: null,
      bridge_netfilter: null,
    },
  },
};

const generations = (host: Host) => readdir(`${host.stateDir}/pki/generations`);

async function fingerprintOf(host: Host): Promise<string> {
  const identity = await new IdentityStore(diskFs, host.stateDir).current();
  return identity?.certificate.fingerprint256 ?? 'none';
}

/** From `isDue` on, the first certificate is due because of its issuer, until another one comes. */
async function renewable(host: Host, isDue: () => boolean = () => true) {
  const first = await fingerprintOf(host);
  const renewing = renewingBy(host.authority);
  host.gateway.renew = renewing.behaviour;
  host.gateway.identity = ({ certificate }) =>
    identified(certificate, certificate?.fingerprint256 === first && isDue() ? 'issuer' : null);
  return { first, keys: renewing.keys };
}

describe('a renewal while the agent runs', () => {
  test('during a job: heartbeats go on with the new certificate; after the next lease the former generation is gone', async () => {
    await using host = await enrolledHost(CHECKING);
    let isWorking = false;
    const beats: (string | undefined)[] = [];
    const { first } = await renewable(host, () => isWorking);
    const leases: (string | undefined)[] = [];
    const done = Promise.withResolvers<Reply>();
    host.gateway.lease = ({ certificate }) => {
      leases.push(certificate?.fingerprint256);
      return leases.length === 1 ? grant(JOB_ID, 3_000) : idle();
    };
    host.gateway.healthz = ({ certificate }) => {
      isWorking = true;
      // The job's own question is answered at the end; the new certificate is tried out at once.
      return certificate?.fingerprint256 === first ? done.promise : { status: 200, body: {} };
    };
    host.gateway.heartbeat = ({ certificate }) => {
      beats.push(certificate?.fingerprint256);
      return heartbeatFor(3_000);
    };
    await using agent = host.start('run');
    await agent.logged('certificate renewed');
    const second = await fingerprintOf(host);
    await waitFor(() => beats.includes(second), { what: 'a heartbeat with the new certificate', deadlineMs: 20_000 });
    expect(await generations(host)).toEqual(['1', '2']);
    done.resolve({ status: 200, body: {} });
    await waitFor(async () => (await generations(host)).length === 1, { what: 'the former generation is removed' });
    expect(await agent.logged('job ended')).toMatchObject({ delivery: 'accepted' });
    expect(await generations(host)).toEqual(['2']);
    expect(leases[0]).toBe(first);
    expect(new Set(leases.slice(1))).toEqual(new Set([second]));
    agent.child.kill('SIGTERM');
    expect(await agent.exited).toBe(0);
  });

  test('the gateway does not take the new certificate: the job is dropped, exit 3; started again, the former one serves', async () => {
    await using host = await enrolledHost(CHECKING);
    const { first } = await renewable(host);
    let completions = 0;
    host.gateway.complete = () => {
      completions += 1;
      return { status: 200, body: {} };
    };
    const takesFirstAlone = (certificate: { readonly fingerprint256: string } | undefined, reply: Reply): Reply =>
      certificate?.fingerprint256 === first ? reply : problem(401, 'certificate_unknown');
    host.gateway.lease = () => grant(JOB_ID, 60_000);
    host.gateway.healthz = ({ certificate }) => takesFirstAlone(certificate, 'hold');
    {
      await using agent = host.start('run');
      expect(await agent.exited).toBe(3);
      expect(
        await agent.logged('the gateway does not take the staged identity; exiting to start anew from it'),
      ).toMatchObject({ reason: 'HTTP 401 certificate_unknown' });
      expect(completions).toBe(0);
      expect(await generations(host)).toEqual(['1', '2']);
    }
    host.gateway.identity = ({ certificate }) => takesFirstAlone(certificate, identified(certificate));
    host.gateway.lease = ({ certificate }) => takesFirstAlone(certificate, idle());
    await using agent = host.start('run');
    expect(
      await agent.logged('the gateway does not take the identity in force; going on with the former one'),
    ).toMatchObject({ generation: 1, refused_generation: 2 });
    await agent.logged('leasing');
    expect(await generations(host)).toEqual(['1', '2']);
  });

  test('what is under way on the former client is answered there, and then its connections end', async () => {
    await using host = await enrolledHost();
    await renewable(host);
    const store = new IdentityStore(diskFs, host.stateDir);
    const identity = await store.current();
    if (identity === undefined) throw new Error('not enrolled');
    const gatewayUrl = new URL(host.gateway.gatewayUrl);
    const former = new GatewayClient(gatewayUrl, identity, systemTime);
    const { log } = capturedLog();
    const connection = new GatewayConnection({ nodeId: NODE_ID, gatewayUrl, store, time: systemTime, log }, former, 1);
    const asked = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<Reply>();
    host.gateway.lease = () => {
      asked.resolve();
      return answered.promise;
    };
    const { signal } = new AbortController();
    const lease = connection.client.lease(LEASE, signal);
    await asked.promise;
    expect(await connection.renew(signal)).toEqual({ kind: 'swapped' });
    expect(connection.client).not.toBe(former);
    answered.resolve(idle());
    expect(await lease).toMatchObject({ kind: 'idle' });
    await former.retire();
    expect(await former.healthz(signal)).toMatchObject({ kind: 'unreachable' });
    await connection.close();
  });

  test('refused after the renewal, because history was restored to before it: goes back to the former one, stays there, and takes the new one again once the gateway does', async () => {
    await using host = await enrolledHost();
    const { first } = await renewable(host);
    const store = new IdentityStore(diskFs, host.stateDir);
    const identity = await store.current();
    if (identity === undefined) throw new Error('not enrolled');
    const gatewayUrl = new URL(host.gateway.gatewayUrl);
    const { log } = capturedLog();
    const client = new GatewayClient(gatewayUrl, identity, systemTime);
    const connection = new GatewayConnection({ nodeId: NODE_ID, gatewayUrl, store, time: systemTime, log }, client, 1);
    const { signal } = new AbortController();
    expect(await connection.renew(signal)).toEqual({ kind: 'swapped' });
    host.gateway.identity = ({ certificate }) =>
      certificate?.fingerprint256 === first ? identified(certificate) : problem(401, 'certificate_unknown');
    await connection.reload({ refused: false, signal });
    expect(connection.client.identity.generation).toBe(2);
    await connection.reload({ refused: true, signal });
    expect(connection.client.identity.generation).toBe(1);
    await connection.reload({ refused: true, signal });
    expect(connection.client.identity.generation).toBe(1);
    host.gateway.identity = ({ certificate }) =>
      certificate?.fingerprint256 === first ? problem(401, 'certificate_unknown') : identified(certificate);
    await connection.reload({ refused: true, signal });
    expect(connection.client.identity.generation).toBe(2);
    await connection.close();
  });

  test('the disk does not let the former generation go: said once, and tried again at each lease', async () => {
    await using host = await enrolledHost();
    await renewable(host);
    let failures = 2;
    const remove = (path: string) => {
      if (!path.endsWith('/generations/1') || failures === 0) return diskFs.remove(path);
      failures -= 1;
      return Promise.reject(new Error('EIO'));
    };
    const store = new IdentityStore({ ...diskFs, remove }, host.stateDir);
    const identity = await store.current();
    if (identity === undefined) throw new Error('not enrolled');
    const gatewayUrl = new URL(host.gateway.gatewayUrl);
    const { log, lines } = capturedLog();
    const client = new GatewayClient(gatewayUrl, identity, systemTime);
    const connection = new GatewayConnection({ nodeId: NODE_ID, gatewayUrl, store, time: systemTime, log }, client, 1);
    expect(await connection.renew(new AbortController().signal)).toEqual({ kind: 'swapped' });
    await connection.acknowledge(connection.client);
    await connection.acknowledge(connection.client);
    expect(await generations(host)).toEqual(['1', '2']);
    await connection.acknowledge(connection.client);
    expect(await generations(host)).toEqual(['2']);
    expect(lines.filter(({ level }) => level === 'error')).toEqual([
      expect.objectContaining({ msg: 'former generations not removed, trying again', reason: 'EIO' }),
    ]);
    await connection.close();
  });
});

describe('pushleft-agent renew-certificate', () => {
  test('due: exit 0, and a running agent takes the new certificate up', async () => {
    await using host = await enrolledHost(CHECKING);
    const { keys } = await renewable(host, () => false);
    const leases = new Set<string | undefined>();
    host.gateway.lease = ({ certificate }) => {
      leases.add(certificate?.fingerprint256);
      return idle();
    };
    await using running = host.start('run');
    await running.logged('leasing');
    await using agent = host.start('renew-certificate');
    expect(await agent.exited).toBe(0);
    expect(await agent.logged('certificate renewed')).toMatchObject({ node: NODE_ID, generation: 2 });
    expect(await running.logged('another identity is staged, using it')).toMatchObject({ generation: 2 });
    const second = await fingerprintOf(host);
    await waitFor(() => leases.has(second), { what: 'a lease with the new certificate' });
    await waitFor(async () => (await generations(host)).length === 1, { what: 'the former generation is removed' });
    expect(keys.size).toBe(1);
  });

  test('not due: exit 1, one line, and nothing of it stays on disk', async () => {
    await using host = await enrolledHost();
    await using agent = host.start('renew-certificate');
    expect(await agent.exited).toBe(1);
    expect(await agent.logged('the certificate is not due for renewal')).toMatchObject({ node: NODE_ID });
    expect(agent.stderr().trimEnd().split('\n')).toHaveLength(1);
    expect(await generations(host)).toEqual(['1']);
  });

  test('the answer is lost: exit 3; the next attempt asks with the same key', async () => {
    await using host = await enrolledHost();
    const { keys } = await renewable(host);
    const { renew } = host.gateway;
    host.gateway.renew = async (received): Promise<Reply> => {
      await renew(received);
      return 'drop';
    };
    {
      await using agent = host.start('renew-certificate');
      expect(await agent.exited).toBe(3);
      expect(await generations(host)).toEqual(['1', '2']);
    }
    host.gateway.renew = renew;
    await using agent = host.start('renew-certificate');
    expect(await agent.exited).toBe(0);
    expect(keys.size).toBe(1);
    expect(await generations(host)).toEqual(['1', '2']);
  });

  test('a certificate for another key in the answer: exit 1, the identity in force stays', async () => {
    await using host = await enrolledHost();
    const { first } = await renewable(host);
    host.gateway.renew = ({ certificate }) => ({
      status: 200,
      body: {
        certificate_pem: certificate?.toString(),
        ca_pem: host.authority.caPem,
        not_after: '2026-01-02T00:00:00Z',
      },
    });
    await using agent = host.start('renew-certificate');
    expect(await agent.exited).toBe(1);
    expect(agent.stderr()).toContain('it is for another key');
    expect(await fingerprintOf(host)).toBe(first);
  });
});
