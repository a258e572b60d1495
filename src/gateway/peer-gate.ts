import type { X509Certificate } from 'node:crypto';
import type { Server } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { issued } from '../pki/bundle.ts';
import { peerCertificate } from '../pki/peer.ts';

/** A connection that is listened to: the fingerprint of its certificate, and whether that had run out at the handshake. */
export interface Peer {
  readonly fingerprint: string;
  readonly expired: boolean;
}

const peers = new WeakMap<object, Peer>();

/**
 * Lets connections in by their certificates, before the HTTP parser sees a byte: without a certificate, or with one of an untrusted CA
 * or for another purpose, a connection is closed at once. An expired one of a trusted CA is let in to be told so, because a TLS 1.3
 * client takes a refused handshake for a network fault (DESIGN §4). Whom `trusted` names at the end of the handshake decides: the bundle
 * may have changed since it began.
 */
export function guardPeers(server: Server, trusted: () => readonly X509Certificate[]): void {
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    const peer = admit(socket, trusted());
    if (peer === undefined) socket.destroy();
    else peers.set(socket, peer);
  });
  // Handshakes that fail are the network's daily noise.
  server.on('tlsClientError', (_, socket) => socket.destroy());
}

/** The peer of an admitted connection. */
export function peerOf(socket: object): Peer | undefined {
  return peers.get(socket);
}

function admit(socket: TLSSocket, trusted: readonly X509Certificate[]): Peer | undefined {
  const certificate = peerCertificate(socket);
  if (certificate === undefined) return undefined;
  // Node types it as an Error, and sets OpenSSL's code as a string.
  const expired = !socket.authorized && String(socket.authorizationError) === 'CERT_HAS_EXPIRED';
  if (!socket.authorized && !expired) return undefined;
  // OpenSSL tells only the last thing that was wrong, so an expired certificate of a stranger looks the same; and what it trusted when the
  // handshake began may not be trusted any more: ask again.
  const leaf = socket.getPeerX509Certificate();
  const known = leaf !== undefined && trusted.some((ca) => issued(ca, leaf));
  return known ? { fingerprint: certificate.fingerprintSha256, expired } : undefined;
}
