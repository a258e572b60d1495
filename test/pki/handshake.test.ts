import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fingerprintOfSocket, peerCertificate } from '../../src/pki/peer.ts';
import { issueAgent, issueServer, newCa, newKey, pemOf, type TestCa } from './support.ts';

/** The whole second in which the tests start: TLS looks at the real clock. */
const T0 = Math.floor(Date.now() / 1000) * 1000;

/** What the server saw of one client. */
interface Seen {
  authorized: boolean;
  error: string | undefined;
  fingerprint: string | undefined;
  sameObject: boolean;
  notAfterMs: number | undefined;
}

let ca: TestCa;
let server: ReturnType<typeof createServer>;
beforeAll(async () => {
  ca = await newCa();
  const key = newKey();
  server = createServer({
    key: pemOf(key),
    cert: (await issueServer(ca, key)).pem,
    ca: ca.certPem,
    requestCert: true,
    rejectUnauthorized: false, // the test reports what TLS thinks of the certificate
    minVersion: 'TLSv1.3',
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => server.close());

/** Connects with a certificate, or none, checks the server's, and tells what the server saw. */
async function handshake(client: { key: string; cert: string } | undefined): Promise<Seen> {
  const accepted = once(server, 'secureConnection');
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port, ca: ca.certPem, ...client });
  try {
    await once(socket, 'secureConnect');
    const [peer] = (await accepted) as [TLSSocket];
    const seen = {
      authorized: peer.authorized,
      error: peer.authorizationError === null ? undefined : String(peer.authorizationError),
      fingerprint: fingerprintOfSocket(peer),
      sameObject: peerCertificate(peer) === peerCertificate(peer),
      notAfterMs: peerCertificate(peer)?.notAfterMs,
    };
    peer.destroy();
    return seen;
  } finally {
    socket.destroy();
  }
}

describe('a TLS 1.3 handshake', () => {
  test('agent certificate of the trusted CA: authorized, known by its fingerprint, read once', async () => {
    const key = newKey();
    const certificate = await issueAgent(ca, key, T0);
    expect(await handshake({ key: pemOf(key), cert: certificate.pem })).toEqual({
      authorized: true,
      error: undefined,
      fingerprint: certificate.fingerprintSha256,
      sameObject: true,
      notAfterMs: T0 + 3_600_000,
    });
  });

  test('nominal start 30 s ahead, as on a host whose clock is slow: authorized', async () => {
    const key = newKey();
    const { pem } = await issueAgent(ca, key, T0 + 30_000);
    expect(await handshake({ key: pemOf(key), cert: pem })).toMatchObject({ authorized: true });
  });

  test('start an hour ahead: not authorized', async () => {
    const key = newKey();
    const { pem } = await issueAgent(ca, key, T0 + 3_600_000);
    expect(await handshake({ key: pemOf(key), cert: pem })).toMatchObject({
      authorized: false,
      error: 'CERT_NOT_YET_VALID',
    });
  });

  test('ended an hour ago: not authorized, and still known by its fingerprint', async () => {
    const key = newKey();
    const expired = await issueAgent(ca, key, T0 - 7_200_000);
    expect(await handshake({ key: pemOf(key), cert: expired.pem })).toMatchObject({
      authorized: false,
      error: 'CERT_HAS_EXPIRED',
      fingerprint: expired.fingerprintSha256,
    });
  });

  test("a server's certificate used by a client: not authorized", async () => {
    const key = newKey();
    const { pem } = await issueServer(ca, key);
    expect(await handshake({ key: pemOf(key), cert: pem })).toMatchObject({
      authorized: false,
      error: 'INVALID_PURPOSE',
    });
  });

  test('the same name from another CA: not authorized', async () => {
    const [other, key] = [await newCa(), newKey()];
    expect(await handshake({ key: pemOf(key), cert: (await issueAgent(other, key)).pem })).toMatchObject({
      authorized: false,
    });
  });

  test('no certificate: no fingerprint', async () => {
    expect(await handshake(undefined)).toMatchObject({
      authorized: false,
      fingerprint: undefined,
      notAfterMs: undefined,
    });
  });

  test('an agent certificate in the place of the server: the client refuses', async () => {
    const key = newKey();
    const impostor = createServer({ key: pemOf(key), cert: (await issueAgent(ca, key)).pem });
    impostor.on('tlsClientError', () => undefined);
    impostor.listen(0, '127.0.0.1');
    await once(impostor, 'listening');
    const { port } = impostor.address() as AddressInfo;
    const socket = connect({ host: '127.0.0.1', port, ca: ca.certPem, checkServerIdentity: () => undefined });
    const [error] = (await once(socket, 'error')) as [Error];
    impostor.close();
    expect(error.message).toContain('unsuitable certificate purpose');
  });
});
