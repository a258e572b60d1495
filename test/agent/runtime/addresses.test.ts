import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { advertiseAddress } from '../../../agent/runtime/advertise-address.ts';
import { findFreePort } from '../../../agent/runtime/free-port.ts';

const external = Object.values(networkInterfaces())
  .flatMap((interfaces) => interfaces ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

test.each([
  ['configured: that one', '203.0.113.7', 'https://127.0.0.1:8443', '203.0.113.7'],
  ['not configured, the gateway on this machine: the loopback', undefined, 'https://127.0.0.1:8443', '127.0.0.1'],
  ['not configured, over IPv6: the loopback of that', undefined, 'https://[::1]:8443', '::1'],
  [
    'the gateway has no address: the first that is not a loopback',
    undefined,
    'https://gateway.invalid',
    external ?? '127.0.0.1',
  ],
])('the advertised address, %s', async (_, configured, gatewayUrl, expected) => {
  const config = { advertiseAddress: configured, gatewayUrl: new URL(gatewayUrl) };
  expect(await advertiseAddress(config)).toBe(expected);
});

test('a free port: the preferred one, unless something listens on it', async () => {
  const port = await findFreePort('127.0.0.1', new Set());
  expect(await findFreePort('127.0.0.1', new Set(), port)).toBe(port);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  expect(await findFreePort('127.0.0.1', new Set(), port)).not.toBe(port);
  server.close();
});

test('an address that is not of this host: an error', async () => {
  await expect(findFreePort('203.0.113.7', new Set())).rejects.toThrow('EADDRNOTAVAIL');
});
