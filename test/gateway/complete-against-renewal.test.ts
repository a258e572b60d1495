import { hash, randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  beginRotationCommand,
  completeRotationCommand,
  initializeCaCommand,
  switchIssuerCommand,
} from '../../src/commands/ca.ts';
import {
  authorizeEnrollmentCommand,
  authorizeRenewalCommand,
  recordFirstUseCommand,
  recordIssuedCommand,
} from '../../src/commands/certificate.ts';
import { armSecretCommand, requestNodeCommand } from '../../src/commands/node.ts';
import { DECISION_LOCK } from '../../src/database/locks.ts';
import { nodeStream } from '../../src/domain/stream.ts';
import { enroll, type Issuance, type IssuanceServices, renewCertificate } from '../../src/gateway/issuance.ts';
import type { CommandDefinition, CommandOutcome } from '../../src/transactor/command.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';
import { newCa, newKey, spkiOf, type TestCa } from '../pki/support.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { execute, nodeRequest, OPERATOR, testTransactor } from '../support/fleet.ts';
import { waitFor } from '../support/wait-for.ts';
import { pkiOf } from './support/fleet.ts';
import { appendCommand } from './support/renewal.ts';

let database: TestDatabase;
/** Of a gateway and of an operator: two sessions, which meet at the decision lock. */
let gateway: Transactor;
let operator: Transactor;
/** The CA of the fleet; each test rotates it away. */
let current: TestCa;

beforeAll(async () => {
  database = await createTestDatabase();
  [gateway, operator] = [testTransactor(database.url), testTransactor(database.url)];
  current = await newCa();
  await operate(initializeCaCommand, named(current));
});
afterAll(async () => {
  await Promise.all([gateway.close(), operator.close()]);
  await database.drop();
});

const named = ({ certPem, signer }: TestCa) => ({
  ca_sha256: signer.caSha256,
  ca_pem: certPem,
  not_after: signer.caNotAfterMs,
});

async function operate<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<CommandOutcome> {
  const outcome = await execute(operator, definition, command);
  if (!outcome.ok) throw new Error(`refused: ${outcome.refusal.code}`);
  return outcome;
}

/** A node as its agent and its operator know it. */
interface Node {
  readonly nodeId: string;
  readonly name: string;
  readonly secretHex: string;
}

/** A node that awaits its enrolment, and whose host believes gateways of both CAs. */
async function provision(...cas: readonly TestCa[]): Promise<Node> {
  const secretHex = randomBytes(32).toString('hex');
  const request = nodeRequest();
  await operate(requestNodeCommand, request);
  await operate(armSecretCommand, {
    node_id: request.node_id,
    secret_sha256: hash('sha256', Buffer.from(secretHex, 'hex')),
    ttl_ms: 900_000,
    ca_sha256s: cas.map(({ signer }) => signer.caSha256),
  });
  return { nodeId: request.node_id, name: request.name, secretHex };
}

/** The services of a gateway that has the files of both CAs. */
const services = (transactor: IssuanceServices['transactor'], ...[first, ...more]: [TestCa, ...TestCa[]]) => ({
  transactor,
  pki: pkiOf(first.signer, ...more.map(({ signer }) => signer)),
  lifetimeSeconds: 3_600,
});
const options = { actor: { kind: 'gateway', id: 'test' } } as const;

function fingerprintOf(issuance: Issuance): string {
  if (!issuance.ok) throw new Error(`not issued: ${JSON.stringify(issuance)}`);
  const body = issuance.value.certificatePem.replaceAll(/-----[A-Z ]+-----|\s/g, '');
  return hash('sha256', Buffer.from(body, 'base64'));
}

const use = (fingerprint: string) => gateway.execute(recordFirstUseCommand, { fingerprint }, options);
const complete = () => operator.execute(completeRotationCommand, {}, { actor: OPERATOR });

/** An agent that leases with a certificate of the CA of now. */
async function workingNode(): Promise<Node & { fingerprint: string }> {
  const node = await provision(current);
  const fingerprint = fingerprintOf(
    await enroll({ ...node, spkiDer: spkiOf(newKey()) }, services(gateway, current), options),
  );
  await use(fingerprint);
  return { ...node, fingerprint };
}

async function beginAndSwitch(next: TestCa): Promise<void> {
  const rotation_id = randomUUID();
  await operate(beginRotationCommand, {
    rotation_id,
    previous_ca_sha256: current.signer.caSha256,
    ...named(next),
  });
  await operate(switchIssuerCommand, { rotation_id });
}

/** Ends a test: the rotation is completed, and the node leaves the fleet so that it does not block the next one. */
async function settle(next: TestCa, node: Node): Promise<void> {
  current = next;
  const events = [{ type: 'node_retired', data: { node_id: node.nodeId } }] as const;
  await operate(appendCommand, { stream: nodeStream(node.nodeId), events });
}

/** How many sessions wait for the decision lock. */
async function waitingForLock(): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rows[0]?.count ?? 0;
}

/** Lets two commands of two sessions wait for the lock in this order, and then lets them go: the server grants it in that order. */
async function race<A, B>(one: () => Promise<A>, other: () => Promise<B>): Promise<[A, B]> {
  const holder = await database.pool.connect();
  await holder.query(`SELECT pg_advisory_lock(${DECISION_LOCK})`);
  try {
    const first = one();
    await waitFor(async () => (await waitingForLock()) === 1, { what: 'the first one waits' });
    const second = other();
    await waitFor(async () => (await waitingForLock()) === 2, { what: 'both wait' });
    await holder.query(`SELECT pg_advisory_unlock(${DECISION_LOCK})`);
    return await Promise.all([first, second]);
  } finally {
    holder.release(true);
  }
}

type Order = 'complete first' | 'complete second';

/** A gateway's transactor on which one kind of command meets the completion of the rotation, whose outcome is kept. */
class RacedTransactor {
  completion: CommandOutcome | undefined;
  readonly #step: string;
  readonly #order: Order;

  constructor(step: string, order: Order) {
    this.#step = step;
    this.#order = order;
  }

  readonly execute: IssuanceServices['transactor']['execute'] = async (definition, command, given) => {
    const take = () => gateway.execute(definition, command, given);
    if (definition.name !== this.#step) return take();
    if (this.#order === 'complete first') {
      const [completion, outcome] = await race(complete, take);
      this.completion = completion;
      return outcome;
    }
    const [outcome, completion] = await race(take, complete);
    this.completion = completion;
    return outcome;
  };
}

/** `completed`, or what the completion says of a node: its reasons, if it lists it. */
function verdict(completion: CommandOutcome | undefined, { name }: Node): string | string[] {
  if (completion === undefined) throw new Error('the step was not taken');
  if (completion.ok) return 'completed';
  const { nodes } = completion.refusal.details;
  const own = (Array.isArray(nodes) ? nodes : []).filter((line) => String(line).startsWith(`${name}: `));
  return own.map((line) =>
    String(line)
      .slice(name.length + 2)
      .replace(/, expires at .*/, ''),
  );
}

/** Names of nodes that were given certificates and have none in force any more. */
async function lockedOut(): Promise<string[]> {
  const { rows } = await database.pool.query<{ name: string }>(
    `SELECT name FROM fleet.fleet_nodes AS n WHERE status <> 'retired'
       AND EXISTS (SELECT 1 FROM fleet.fleet_node_certificates AS c WHERE c.node_id = n.node_id)
       AND NOT EXISTS (SELECT 1 FROM fleet.fleet_node_certificates AS c
                       WHERE c.node_id = n.node_id AND revoked_at IS NULL AND not_after > clock_timestamp())`,
  );
  return rows.map(({ name }) => name);
}

const { name: authorize } = authorizeRenewalCommand;
const { name: record } = recordIssuedCommand;
const { name: firstUse } = recordFirstUseCommand;

describe('a completion meets a renewal at the decision lock', () => {
  test.for<[step: string, order: Order, verdict: string | string[]]>([
    [authorize, 'complete first', ['never_renewed']],
    [authorize, 'complete second', ['never_renewed']],
    [record, 'complete first', ['never_renewed']],
    [record, 'complete second', ['renewed_never_used']],
    [firstUse, 'complete first', ['renewed_never_used']],
    [firstUse, 'complete second', 'completed'],
  ])('%s, %s: %s, nobody is locked out, and the renewal goes on', async ([step, order, expected]) => {
    const node = await workingNode();
    const next = await newCa();
    await beginAndSwitch(next);
    const raced = new RacedTransactor(step, order);
    const claim = { ...node, spkiDer: spkiOf(newKey()) };
    const fingerprint = fingerprintOf(await renewCertificate(claim, services(raced, next, current), options));
    const used = await raced.execute(recordFirstUseCommand, { fingerprint }, options);

    expect(verdict(raced.completion, node)).toEqual(expected);
    expect(await lockedOut()).toEqual([]);
    expect(used.ok).toBe(true);
    if (expected !== 'completed') expect((await complete()).ok).toBe(true);
    expect(await lockedOut()).toEqual([]);
    expect((await use(fingerprint)).ok).toBe(true);
    expect(await use(node.fingerprint)).toMatchObject({ ok: false, refusal: { code: 'certificate_unknown' } });
    await settle(next, node);
  });

  test.for<[order: Order]>([['complete first'], ['complete second']])(
    'recorded after the switch, authorised before, %s: it is listed, and renews once more',
    async ([order]) => {
      const node = await workingNode();
      await database.pool.query(
        `UPDATE fleet.fleet_node_certificates SET not_before = not_before - interval '3 hours' WHERE node_id = $1`,
        [node.nodeId],
      );
      const next = await newCa();
      const raced = new RacedTransactor(record, order);
      const slow = { ...services(raced, current), pki: signingAfter(() => beginAndSwitch(next)) };
      const fingerprint = fingerprintOf(await renewCertificate({ ...node, spkiDer: spkiOf(newKey()) }, slow, options));
      expect(verdict(raced.completion, node)).toEqual(['never_renewed']);
      expect(await lockedOut()).toEqual([]);

      expect((await use(fingerprint)).ok).toBe(true);
      expect(verdict(await complete(), node)).toEqual(['never_renewed']);
      const again = { ...node, fingerprint, spkiDer: spkiOf(newKey()) };
      const moved = fingerprintOf(await renewCertificate(again, services(gateway, next), options));
      expect((await use(moved)).ok).toBe(true);
      expect((await complete()).ok).toBe(true);
      expect(await lockedOut()).toEqual([]);
      await settle(next, node);
    },
  );
});

describe('a completion meets an enrolment at the decision lock', () => {
  const { name: redeem } = authorizeEnrollmentCommand;

  test.for<[step: string, order: Order]>([
    [redeem, 'complete first'],
    [redeem, 'complete second'],
    [record, 'complete first'],
    [record, 'complete second'],
  ])('%s by the new CA, %s: it ends enrolled', async ([step, order]) => {
    const next = await newCa();
    await beginAndSwitch(next);
    const node = await provision(current, next);
    const raced = new RacedTransactor(step, order);
    const claim = { ...node, spkiDer: spkiOf(newKey()) };
    const fingerprint = fingerprintOf(await enroll(claim, services(raced, next, current), options));
    expect(await lockedOut()).toEqual([]);
    expect((await use(fingerprint)).ok).toBe(true);
    if (raced.completion?.ok === false) expect((await complete()).ok).toBe(true);
    expect(await lockedOut()).toEqual([]);
    await settle(next, node);
  });

  test.for<[order: Order, reasons: string[]]>([
    ['complete first', ['enrolling']],
    ['complete second', ['never_renewed', 'enrolling']],
  ])('recorded after the switch, redeemed before, %s: it is listed (%s), and renews', async ([order, reasons]) => {
    const next = await newCa();
    const node = await provision(current, next);
    const raced = new RacedTransactor(record, order);
    const slow = { ...services(raced, current), pki: signingAfter(() => beginAndSwitch(next)) };
    const fingerprint = fingerprintOf(await enroll({ ...node, spkiDer: spkiOf(newKey()) }, slow, options));
    expect(verdict(raced.completion, node)).toEqual(reasons);
    expect(await lockedOut()).toEqual([]);

    expect((await use(fingerprint)).ok).toBe(true);
    const again = { ...node, fingerprint, spkiDer: spkiOf(newKey()) };
    const moved = fingerprintOf(await renewCertificate(again, services(gateway, next), options));
    expect((await use(moved)).ok).toBe(true);
    expect((await complete()).ok).toBe(true);
    expect(await lockedOut()).toEqual([]);
    await settle(next, node);
  });
});

/** The files of the CA of now, whose signature takes so long that something else happens meanwhile. */
function signingAfter(happens: () => Promise<void>): IssuanceServices['pki'] {
  const { signer } = current;
  const sign = async (tbs: Buffer) => {
    await happens();
    return signer.sign(tbs);
  };
  return pkiOf({ ...signer, sign });
}
