import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCsr } from '../../agent/csr.ts';
import { waitFor } from '../support/wait-for.ts';
import { AgentClient, exchange } from './support/client.ts';
import { newKey, startFleet, type TestFleet } from './support/fleet.ts';

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** Connections from 127.0.0.1 that say nothing, each made anew when it is closed, as a patient flooder would. */
function flood(origin: string, count: number): AsyncDisposable & { readonly closed: () => number } {
  const { port } = new URL(origin);
  const open = new Set<Socket>();
  let over = false;
  let closed = 0;
  const begin = () => {
    const socket = createConnection({ host: '127.0.0.1', port: Number(port), localAddress: '127.0.0.1' });
    open.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => {
      closed += 1;
      open.delete(socket);
      if (!over) setTimeout(() => over || begin(), 50);
    });
  };
  for (let i = 0; i < count; i += 1) begin();
  return {
    closed: () => closed,
    async [Symbol.asyncDispose]() {
      over = true;
      await Promise.all([...open].map((socket) => (socket.destroy(), once(socket, 'close'))));
    },
  };
}

describe('1,000 connections from one address that say nothing', () => {
  test('to the enrolment listener: a node from another address enrols', async () => {
    const { nodeId, secret } = await fleet.provision();
    await using idle = flood(fleet.gateway.enrollUrl, 1_000);
    await waitFor(() => idle.closed() >= 936, { what: 'those beyond the share are closed', deadlineMs: 4_000 });
    const answered = await exchange(fleet.gateway.enrollUrl, '/v1/enroll', {
      ca: fleet.pki.bundlePem,
      localAddress: '127.0.0.2',
      signal: AbortSignal.timeout(5_000),
      body: { node_id: nodeId, enrollment_secret: secret, csr_pem: createCsr(nodeId, newKey()) },
    });
    expect(answered.status).toBe(200);
  });

  test('over: their address is served again', async () => {
    const node = await fleet.provision();
    await flood(fleet.gateway.enrollUrl, 200)[Symbol.asyncDispose]();
    await waitFor(async () => (await fleet.enroll(node).catch(() => undefined))?.status === 200, {
      what: 'the address enrols',
    });
  });

  test('to the agent listener, half as much again as its share: an agent from another address is served', async () => {
    const identity = await fleet.agent();
    await using idle = flood(fleet.gateway.agentUrl, 1_500);
    await waitFor(() => idle.closed() >= 500, { what: 'those beyond the share are closed', deadlineMs: 4_000 });
    using agent = new AgentClient(fleet.gateway.agentUrl, { ...identity, localAddress: '127.0.0.2' });
    expect((await agent.lease()).status).toBe(200);
  });
});

test('a handshake and then nothing: closed by the deadline of the first request', async () => {
  const { port } = new URL(fleet.gateway.enrollUrl);
  const socket = connect({ host: '127.0.0.1', port: Number(port), ca: fleet.pki.bundlePem, servername: 'localhost' });
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  let closed = false;
  socket.resume().once('close', () => {
    closed = true;
  });
  await waitFor(() => closed, { what: 'the silent connection is closed', deadlineMs: 10_000 });
});
