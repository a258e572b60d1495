import { isIP } from 'node:net';
import { connect } from 'node:tls';
import type { Logger } from 'pino';

/** Where a gateway is reached by agents: a name or an IP address, and a port. */
export interface ProbeAddress {
  readonly host: string;
  readonly port: number;
}

/** What a handshake may take, ms: an agent that waits longer gives up too. */
const PATIENCE_MS = 3_000;

/**
 * Shakes hands with whoever listens at an address, by TLS 1.3, and says whether that was a gateway of this fleet: its certificate is proved
 * by `bundlePem`. That it then turns away a client without a certificate is as it should be. The name in the certificate is not looked
 * at, because the way to a gateway may lead through an address that only this host uses. Never rejects.
 */
export function shakeHands(
  { host, port }: ProbeAddress,
  bundlePem: string,
  patienceMs = PATIENCE_MS,
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port,
      ca: bundlePem,
      minVersion: 'TLSv1.3',
      ...(isIP(host) === 0 ? { servername: host } : {}),
      checkServerIdentity: () => undefined,
    });
    const end = (reached: boolean) => {
      clearTimeout(timer);
      resolve(reached);
      socket.destroy();
    };
    const timer = setTimeout(end, patienceMs, false);
    socket.once('secureConnect', () => end(socket.authorized));
    socket.once('close', () => end(false));
    // After the first answer too: whoever is turned away is told so by a reset.
    socket.on('error', () => end(false));
  });
}

/** Tries whether this gateway can be reached, and logs when that changes. */
export class SelfProbe {
  readonly #address: () => ProbeAddress;
  readonly #bundlePem: () => string;
  readonly #log: Pick<Logger, 'info' | 'warn'>;
  #reached = true;

  constructor(address: () => ProbeAddress, bundlePem: () => string, log: Pick<Logger, 'info' | 'warn'>) {
    this.#address = address;
    this.#bundlePem = bundlePem;
    this.#log = log;
  }

  /** Whether a handshake goes through now. Never rejects. */
  async reach(): Promise<boolean> {
    const address = this.#address();
    const reached = await shakeHands(address, this.#bundlePem());
    if (reached !== this.#reached) {
      if (reached) this.#log.info(address, 'this gateway reaches itself again');
      else
        this.#log.warn(address, 'this gateway does not reach itself: until it does, silence of nodes is not counted');
    }
    this.#reached = reached;
    return reached;
  }
}
