import type { Logger } from 'pino';
import { type LifetimeLevel, lifetimeLevel } from '../pki/lifetime.ts';
import type { ServingCertificate } from '../pki/pki-set.ts';

/** Says in the log when the serving certificate comes near its end: once for each level that it reaches. */
export class LifetimeWatch {
  readonly #log: Logger;
  #level: LifetimeLevel = 'fresh';

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Looks at the certificate that is served now. */
  look(serving: ServingCertificate, nowMs: number): void {
    const level = lifetimeLevel(serving, nowMs);
    if (level === this.#level) return;
    this.#level = level;
    const facts = {
      serving: serving.fingerprintSha256,
      not_after: new Date(serving.notAfterMs).toISOString(),
    };
    switch (level) {
      case 'fresh':
        this.#log.info(facts, 'the serving certificate has most of its life before it');
        break;
      case 'ageing':
        this.#log.warn(facts, 'the serving certificate nears its end: run `fleet ca reissue-gateway`');
        break;
      case 'ending':
        this.#log.error(facts, 'the serving certificate is about to end: run `fleet ca reissue-gateway`');
        break;
      case 'expired':
        this.#log.error(facts, 'the serving certificate has expired, agents refuse it: run `fleet ca reissue-gateway`');
        break;
    }
  }
}
