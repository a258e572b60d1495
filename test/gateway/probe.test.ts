import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SelfProbe, shakeHands } from '../../src/gateway/probe.ts';
import { ensureDevelopmentPki } from '../../src/pki/development-ca.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let bundle: string;
let strangersBundle: string;
let gateway: Server;
const opened: Server[] = [];

/** Files of a CA and of a gateway that it has a certificate for. */
async function pkiIn(name: string) {
  const names = { dnsNames: ['localhost'], ipAddresses: ['192.0.2.7'] };
  const paths = await ensureDevelopmentPki(join(folder.path, name), { ...names, now: Date.now() });
  const [key, cert, ca] = await Promise.all(
    [paths.gatewayKey, paths.gatewayCert, paths.trustBundle].map((path) => readFile(path, 'utf8')),
  );
  return { key, cert, ca: ca ?? '' };
}

async function listening<S extends Server>(server: S): Promise<S> {
  opened.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return server;
}

function addressOf(server: Server) {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server does not listen');
  return { host: '127.0.0.1', port: address.port };
}

beforeAll(async () => {
  folder = await temporaryDirectory();
  const [pki, strangers] = [await pkiIn('fleet'), await pkiIn('strangers')];
  [bundle, strangersBundle] = [pki.ca, strangers.ca];
  gateway = await listening(
    createTlsServer({ ...pki, minVersion: 'TLSv1.3', requestCert: true, rejectUnauthorized: true }),
  );
});

afterAll(async () => {
  for (const server of opened) server.close();
  await folder[Symbol.asyncDispose]();
});

test('a gateway of the fleet, which turns away who has no certificate: reached', async () =>
  expect(await shakeHands(addressOf(gateway), bundle)).toBe(true));

test('somebody whom another CA vouches for: not reached', async () =>
  expect(await shakeHands(addressOf(gateway), strangersBundle)).toBe(false));

test('nobody listens: not reached', async () => {
  const server = await listening(createServer());
  const address = addressOf(server);
  server.close();
  expect(await shakeHands(address, bundle)).toBe(false);
});

test('a name that does not resolve: not reached', async () =>
  expect(await shakeHands({ host: 'gateway.invalid', port: 8443 }, bundle)).toBe(false));

test('connections are taken and nothing is said: not reached, in bounded time', async () => {
  const server = await listening(createServer((socket) => socket.on('error', () => undefined)));
  expect(await shakeHands(addressOf(server), bundle, 100)).toBe(false);
});

test('the listener dies and comes back: logged once each', async () => {
  const lines: string[] = [];
  const log = pino(
    { base: null },
    { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) },
  );
  let address = { host: '127.0.0.1', port: 1 };
  const probe = new SelfProbe(
    () => address,
    () => bundle,
    log,
  );
  expect([await probe.reach(), await probe.reach()]).toEqual([false, false]);
  address = addressOf(gateway);
  expect([await probe.reach(), await probe.reach()]).toEqual([true, true]);
  expect(lines).toEqual([
    'this gateway does not reach itself: until it does, silence of nodes is not counted',
    'this gateway reaches itself again',
  ]);
});
