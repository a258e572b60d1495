import {
  abortRotationCommand,
  beginRotationCommand,
  completeRotationCommand,
  initializeCaCommand,
  recordGatewayCertificateCommand,
  switchIssuerCommand,
} from '../../src/commands/ca.ts';
import type { CaState } from '../../src/domain/ca/state.ts';
import { CA, pem } from './events.ts';
import type { MemoryRows } from './memory-rows.ts';
import type { Random } from './random.ts';
import { type Order, order } from './random-orders.ts';

const YEAR = 365 * 86_400_000;
const GATEWAYS = ['gateway@a:1', 'gateway@b:1'];

/** Gives an operator's commands on the fleet's CA, mostly the one that is due, and lets gateways read the files they lead to. */
export class RandomRotation {
  readonly #random: Random;
  readonly #rows: MemoryRows;

  constructor(random: Random, rows: MemoryRows) {
    this.#random = random;
    this.#rows = rows;
  }

  /** The fleet's CA as the log tells it now. */
  get ca(): CaState | undefined {
    return this.#rows.rows('fleet_ca').get('fleet');
  }

  /** The next command, given at a time (ms). */
  next(now: number): Order {
    const random = this.#random;
    const { ca } = this;
    if (ca === undefined) {
      return order(initializeCaCommand, { ca_sha256: CA, ca_pem: pem(random.hex(64)), not_after: now + 10 * YEAR });
    }
    this.#beat(ca, now);
    if (random.percent(10)) return this.#certify(ca, now);
    if (ca.rotation_id === null) return random.percent(20) ? this.#begin(ca, now) : order(completeRotationCommand, {});
    if (random.percent(10)) return order(abortRotationCommand, {});
    if (random.percent(5)) return this.#begin(ca, now);
    if (ca.issuing_ca_sha256 === ca.current_ca_sha256 && random.percent(80)) {
      return order(switchIssuerCommand, { rotation_id: ca.rotation_id });
    }
    return order(completeRotationCommand, {});
  }

  #begin({ current_ca_sha256 }: CaState, now: number): Order {
    const random = this.#random;
    return order(beginRotationCommand, {
      rotation_id: random.uuid(),
      previous_ca_sha256: random.percent(90) ? current_ca_sha256 : random.hex(64),
      ca_sha256: random.percent(90) ? random.hex(64) : current_ca_sha256,
      ca_pem: pem(random.hex(64)),
      not_after: now + 20 * YEAR,
    });
  }

  #certify({ trusted }: CaState, now: number): Order {
    const random = this.#random;
    return order(recordGatewayCertificateCommand, {
      certificate_id: random.hex(32),
      fingerprint: random.hex(64),
      issuer_ca_sha256: random.pick(trusted)?.sha256 ?? CA,
      not_before: now,
      not_after: now + YEAR,
      certificate_pem: pem(random.hex(64)),
      cause: random.pick(['init', 'reissue', 'rotation'] as const) ?? 'init',
    });
  }

  /** Mostly each gateway trusts what it is to trust; some have not read their files again, some are dead. */
  #beat({ trusted }: CaState, now: number): void {
    const random = this.#random;
    for (const program of GATEWAYS) {
      if (random.percent(10)) continue;
      const trusted_ca_sha256s = trusted.map(({ sha256 }) => sha256).slice(random.percent(10) ? 1 : 0);
      this.#rows.putBeacon({ program, kind: 'gateway', trusted_ca_sha256s, beacon_at: now });
    }
  }
}
