import {
  authorizeEnrollmentCommand,
  authorizeRenewalCommand,
  recordConflictCommand,
  recordFirstUseCommand,
  recordIssuedCommand,
  revokeCertificatesCommand,
} from '../../src/commands/certificate.ts';
import { armReenrollmentCommand, armSecretCommand } from '../../src/commands/node.ts';
import type { CaState } from '../../src/domain/ca/state.ts';
import type { EventData } from '../../src/domain/event/catalogue.ts';
import { ENROLLMENT_SECRET_TTL_MS } from '../../src/domain/node/provision.ts';
import type { NodeState } from '../../src/domain/node/state.ts';
import { CA, pem } from './events.ts';
import type { Random } from './random.ts';
import { type Order, order } from './random-orders.ts';

const HOUR = 3_600_000;

/** What was authorised and is to be signed. */
export type Authorized = EventData<'certificate_authorized'>;

/** A certificate as whoever holds it knows it. */
export interface Held extends Authorized {
  readonly fingerprint: string;
  readonly used: boolean;
}

/** Arms a new secret for a first enrolment. The bundle is now and then an old one. */
export function arm(random: Random, { node_id }: NodeState, ca: CaState | undefined): Order {
  return order(armSecretCommand, { node_id, ...secret(random, ca) });
}

/** Arms a new secret for another enrolment. */
export function armAgain(random: Random, { node_id }: NodeState, ca: CaState | undefined): Order {
  return order(armReenrollmentCommand, { node_id, ...secret(random, ca) });
}

function secret(random: Random, ca: CaState | undefined) {
  const trusted = ca?.trusted.map(({ sha256 }) => sha256) ?? [];
  const ca_sha256s = random.percent(90) ? trusted : trusted.slice(1);
  return { secret_sha256: random.hex(64), ttl_ms: ENROLLMENT_SECRET_TTL_MS, ca_sha256s };
}

/** Redeems one of the armed secrets, or a wrong one when none is armed. */
export function enroll(
  random: Random,
  { node_id, armed_secrets }: NodeState,
  ca: CaState | undefined,
  now: number,
): Order {
  return order(authorizeEnrollmentCommand, {
    ...toBeSigned(random, ca, now),
    node_id,
    secret_sha256: random.pick(armed_secrets)?.sha256 ?? random.hex(64),
  });
}

/** Renews a certificate for another key; now and then a gateway has not heard which CA issues. */
export function renew(random: Random, { fingerprint }: Held, ca: CaState | undefined, now: number): Order {
  return order(authorizeRenewalCommand, { ...toBeSigned(random, ca, now), fingerprint });
}

function toBeSigned(random: Random, ca: CaState | undefined, now: number) {
  const issuing = ca?.issuing_ca_sha256 ?? CA;
  return {
    certificate_id: random.hex(32),
    public_key_spki: Buffer.from(random.hex(32), 'hex').toString('base64'),
    tbs_sha256: random.hex(64),
    issuer_ca_sha256: random.percent(97) ? issuing : (random.pick(ca?.trusted ?? [])?.sha256 ?? issuing),
    not_before: now + random.integer(-500, 500),
    not_after: now + random.integer(1, 100) * HOUR,
  };
}

/** Records a signature over what was authorised. */
export function sign(random: Random, { certificate_id, node_id, tbs_sha256 }: Authorized): Order {
  const fingerprint = random.hex(64);
  const certificate_pem = pem(random.hex(64));
  return order(recordIssuedCommand, { certificate_id, node_id, tbs_sha256, fingerprint, certificate_pem });
}

/** Records a lease request with a certificate. */
export function use({ fingerprint }: Held): Order {
  return order(recordFirstUseCommand, { fingerprint });
}

/** Revokes one certificate or all of a node. */
export function revoke(random: Random, { node_id }: NodeState, held: Held | undefined): Order {
  const one = held !== undefined && random.percent(50);
  return order(revokeCertificatesCommand, { node_id, ...(one ? { certificate_id: held.certificate_id } : {}) });
}

/** Two hosts were seen with one identity. */
export function conflict(random: Random, { fingerprint }: Held): Order {
  const addresses = [`203.0.113.${random.integer(1, 254)}`, '203.0.113.255'];
  return order(recordConflictCommand, { fingerprint, boot_ids: [random.uuid(), random.uuid()], addresses });
}
