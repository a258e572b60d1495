import { authorizeEnrollmentCommand, recordIssuedCommand } from '../../src/commands/certificate.ts';
import {
  armSecretCommand,
  recordCapacityCommand,
  recordServerCommand,
  recordServerDeletedCommand,
  recordServerRunningCommand,
  requestNodeCommand,
} from '../../src/commands/node.ts';
import { recordFirewallCommand } from '../../src/commands/pool.ts';
import type { EventData } from '../../src/domain/event/catalogue.ts';
import { POOLS } from '../../src/domain/fields.ts';
import { ENROLLMENT_SECRET_TTL_MS } from '../../src/domain/node/provision.ts';
import type { NodeState } from '../../src/domain/node/state.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';
import { pem } from './events.ts';
import type { Random } from './random.ts';

/** A command and its definition, the types of both forgotten: `order.give((definition, command) => …)`. */
export interface Order {
  readonly name: string;
  give<R>(to: <C, S>(definition: CommandDefinition<C, S>, command: C) => R): R;
}

const DAY = 86_400_000;

/** What was authorised and is to be signed. */
export type Authorized = EventData<'certificate_authorized'>;

/** Forgets a command's types. */
export function order<C, S>(definition: CommandDefinition<C, S>, command: C): Order {
  return { name: definition.name, give: (to) => to(definition, command) };
}

/** Asks for another node. */
export function requestNode(random: Random): Order {
  return order(requestNodeCommand, {
    node_id: random.uuid(),
    name: `node-${random.hex(12)}`,
    pool: random.pick(POOLS) ?? 'build',
    provider: 'hetzner',
    region: 'fsn1',
    server_type: 'cx33',
    image: 'debian-13',
    placement_group: random.percent(50) ? 'spread-1' : null,
  });
}

/** Converges a pool's firewall to one of sixteen sets of rules. */
export function convergeFirewall(random: Random): Order {
  const pool = random.pick(POOLS) ?? 'build';
  return order(recordFirewallCommand, { pool, firewall_id: 7, rules_sha256: random.hex(1).repeat(64) });
}

/** Records a capacity. */
export function recordCapacity(random: Random, { node_id }: NodeState): Order {
  const cpu_millis = random.integer(1, 8) * 1_000;
  const rest = { memory_mb: 7_168, disk_gb: 70, architecture: 'x86' } as const;
  return order(recordCapacityCommand, { node_id, cpu_millis, ...rest });
}

/** Arms a new secret. */
export function arm(random: Random, { node_id }: NodeState): Order {
  const ttl_ms = ENROLLMENT_SECRET_TTL_MS;
  return order(armSecretCommand, { node_id, secret_sha256: random.hex(64), ttl_ms, ca_sha256s: [] });
}

/** Records a server, created or adopted. */
export function recordServer(random: Random, { node_id }: NodeState): Order {
  const server_id = random.integer(1, 1_000_000);
  return order(recordServerCommand, { node_id, server_id, adopted: random.percent(30) });
}

/** Records a running server under some address. */
export function recordRunning(random: Random, node: NodeState): Order {
  return order(recordServerRunningCommand, {
    node_id: node.node_id,
    server_id: node.server_id ?? random.integer(1, 1_000_000),
    server_type: node.server_type,
    location: node.region,
    image: node.image,
    public_ipv4: `203.0.113.${random.integer(1, 254)}`,
    public_ipv6: null,
    private_ipv4: null,
  });
}

/** Records that the server is gone. */
export function deleteServer({ node_id }: NodeState): Order {
  return order(recordServerDeletedCommand, { node_id });
}

/** Redeems one of the armed secrets, or a wrong one when none is armed. */
export function enroll(random: Random, { node_id, armed_secrets }: NodeState, now: number): Order {
  return order(authorizeEnrollmentCommand, {
    certificate_id: random.hex(32),
    node_id,
    secret_sha256: random.pick(armed_secrets)?.sha256 ?? random.hex(64),
    public_key_spki: Buffer.from(random.hex(32), 'hex').toString('base64'),
    tbs_sha256: random.hex(64),
    issuer_ca_sha256: 'ca'.repeat(32),
    not_before: now + random.integer(-500, 500),
    not_after: now + random.integer(1, 100) * DAY,
  });
}

/** Records a signature over what was authorised. */
export function sign(random: Random, { certificate_id, node_id, tbs_sha256 }: Authorized): Order {
  const fingerprint = random.hex(64);
  const certificate_pem = pem(random.hex(64));
  return order(recordIssuedCommand, { certificate_id, node_id, tbs_sha256, fingerprint, certificate_pem });
}
