import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { choosePort, choosePorts } from '../../src/up/ports.ts';

describe('port', () => {
  test('preferred one free: that one', async () => {
    const free = await choosePort(0);
    expect(await choosePort(free)).toBe(free);
  });

  test('preferred one in use at loopback: another, and it can be listened on', async () => {
    await using busy = await listen(0);
    const port = await choosePort(busy.port);
    expect(port).not.toBe(busy.port);
    await using listening = await listen(port);
    expect(listening.port).toBe(port);
  });

  test('preferred one chosen before: another', async () => {
    const free = await choosePort(0);
    expect(await choosePort(free, new Set([free]))).not.toBe(free);
  });

  test('two names that prefer the same: one each', async () => {
    const free = await choosePort(0);
    const ports = await choosePorts({ gateway: free, enrolment: free });
    expect(ports.gateway).toBe(free);
    expect(ports.enrolment).not.toBe(free);
  });
});

async function listen(port: number): Promise<{ port: number } & AsyncDisposable> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
