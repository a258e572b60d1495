import type { TLSSocket } from 'node:tls';
import { sha256Hex } from './certificate.ts';

/** What a gateway needs to know of a client's certificate. */
export interface PeerCertificate {
  /** Lower-case hex SHA-256 of the DER, as in the projection. */
  readonly fingerprintSha256: string;
  readonly notAfterMs: number;
}

const peers = new WeakMap<TLSSocket, PeerCertificate>();

/**
 * The certificate that the peer of a connected socket presented, or undefined when it presented none. Whether its chain
 * was trusted is the socket's `authorized`, not said here. Read once a socket, and not through the legacy
 * peer-certificate object, which costs four times as much as the whole request (DESIGN section 8).
 */
export function peerCertificate(socket: TLSSocket): PeerCertificate | undefined {
  const known = peers.get(socket);
  if (known !== undefined) return known;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  const peer = Object.freeze({
    fingerprintSha256: sha256Hex(certificate.raw),
    notAfterMs: certificate.validToDate.getTime(),
  });
  peers.set(socket, peer);
  return peer;
}

/** The fingerprint of the certificate that the peer presented: its identity for every request on this socket. */
export const fingerprintOfSocket = (socket: TLSSocket): string | undefined =>
  peerCertificate(socket)?.fingerprintSha256;
