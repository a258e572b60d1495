import { generateKeyPairSync, hash, type KeyObject, randomBytes, randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { createCsr } from '../../../agent/csr.ts';
import { queueJobCommand } from '../../../src/commands/job.ts';
import {
  admitNodeCommand,
  armSecretCommand,
  recordCapacityCommand,
  requestNodeCommand,
} from '../../../src/commands/node.ts';
import type { Pool } from '../../../src/domain/fields.ts';
import { readGatewayConfig } from '../../../src/gateway/config.ts';
import type { EnrollRates } from '../../../src/gateway/enroll-limits.ts';
import { type Gateway, startGateway } from '../../../src/gateway/gateway.ts';
import type { IssuanceServices } from '../../../src/gateway/issuance.ts';
import type { LivenessTime } from '../../../src/gateway/liveness.ts';
import type { Ticker } from '../../../src/gateway/ticker.ts';
import { ensureDevelopmentPki } from '../../../src/pki/development-ca.ts';
import type { PkiPaths } from '../../../src/pki/files.ts';
import { loadPki, type PkiSet } from '../../../src/pki/pki-set.ts';
import type { Signer } from '../../../src/pki/signer.ts';
import type { CommandDefinition, CommandOutcome } from '../../../src/transactor/command.ts';
import { Transactor } from '../../../src/transactor/transactor.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { type Answered, exchange, type Identity } from './client.ts';

/** Far above what a test asks for; the limits have tests of their own. */
export const NO_LIMITS: EnrollRates = {
  perAddress: { perSecond: 1e6, burst: 1e6 },
  shared: { perSecond: 1e6, burst: 1e6 },
  reserve: { perSecond: 1e6, burst: 1e6 },
  perAwaitedNode: { perSecond: 1e6, burst: 1e6 },
};

/** A node that awaits its enrolment, with the secret that its user-data would hold. */
export interface AwaitedNode {
  readonly nodeId: string;
  readonly secret: string;
}

/** A fleet of one gateway on a database and a CA of its own; everything is real but the hosts. */
export interface TestFleet extends AsyncDisposable {
  readonly database: TestDatabase;
  readonly pki: PkiSet;
  readonly pkiPaths: PkiPaths;
  readonly gateway: Gateway;
  readonly logLines: string[];
  readonly operator: Transactor;
  /** Another gateway on the same database. */
  startGateway(env?: Record<string, string>, rates?: EnrollRates): Promise<Gateway>;
  operate<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<Extract<CommandOutcome, { ok: true }>>;
  provision(pool?: Pool, secretLifetimeMs?: number): Promise<AwaitedNode>;
  enroll(node: AwaitedNode, key?: KeyObject): Promise<Answered>;
  /** Provisions and enrols. */
  agent(pool?: Pool): Promise<TestAgent>;
  queue(target: { nodeId: string } | { pool: Pool }, maxAttempts?: number): Promise<string>;
}

/** An enrolled agent's identity. */
export interface TestAgent extends Identity {
  readonly nodeId: string;
  readonly secret: string;
}

/**
 * Starts a fleet. `await using fleet = await startFleet()` ends it. Its gateways reach the database by the URL that `via` makes, and its
 * first one looks at its PKI files when `pkiTicker` says; all of them write what they heard when `livenessTime` says.
 */
export async function startFleet(
  env: Record<string, string> = {},
  rates: EnrollRates = NO_LIMITS,
  via: (databaseUrl: string) => string = (databaseUrl) => databaseUrl,
  pkiTicker?: Ticker,
  livenessTime?: LivenessTime,
): Promise<TestFleet> {
  const folder = await temporaryDirectory();
  const database = await createTestDatabase();
  const pkiPaths = await ensureDevelopmentPki(folder.path, {
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1'],
    now: Date.now(),
  });
  const loading = await loadPki(pkiPaths, Date.now());
  if (!loading.ok) throw new Error(loading.problem.message);
  const { pki } = loading;
  const logLines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void logLines.push(line) });
  const gateways: Gateway[] = [];
  const start = async (extra: Record<string, string> = {}, limits: EnrollRates = NO_LIMITS, ticker?: Ticker) => {
    const read = readGatewayConfig(gatewayEnvironment(via(database.url), pkiPaths, { ...env, ...extra }), '0.1.0');
    if (!read.ok) throw new Error(read.message);
    const gateway = await startGateway(read.config, {
      log,
      rates: limits,
      ...(ticker === undefined ? {} : { pkiTicker: ticker }),
      ...(livenessTime === undefined ? {} : { livenessTime }),
    });
    gateways.push(gateway);
    return gateway;
  };
  const gateway = await start({}, rates, pkiTicker);
  const operator = new Transactor({ url: database.url, program: 'test', programVersion: '0.1.0' });
  const operate: TestFleet['operate'] = async (definition, command) => {
    const outcome = await operator.execute(definition, command, { actor: { kind: 'operator', id: 'test' } });
    if (!outcome.ok) throw new Error(`refused: ${outcome.refusal.code}`);
    return outcome;
  };
  const fleet: Omit<TestFleet, 'agent'> = {
    database,
    pki,
    pkiPaths,
    gateway,
    logLines,
    operator,
    startGateway: start,
    operate,
    async provision(pool = 'application', secretLifetimeMs = 900_000) {
      const nodeId = randomUUID();
      const secret = randomBytes(32).toString('hex');
      await operate(requestNodeCommand, {
        node_id: nodeId,
        name: `node-${nodeId.slice(0, 8)}`,
        pool,
        provider: 'hetzner',
        region: 'fsn1',
        server_type: 'cx32',
        image: 'ubuntu-24.04',
        placement_group: null,
      });
      await operate(recordCapacityCommand, {
        node_id: nodeId,
        cpu_millis: 3_500,
        memory_mb: 7_168,
        disk_gb: 60,
        architecture: 'x86',
      });
      const { rows } = await database.pool.query<{ sha256: string }>(
        "SELECT ca ->> 'sha256' AS sha256 FROM fleet.fleet_ca, jsonb_array_elements(trusted) AS ca",
      );
      await operate(armSecretCommand, {
        node_id: nodeId,
        secret_sha256: hash('sha256', Buffer.from(secret, 'hex')),
        ttl_ms: secretLifetimeMs,
        ca_sha256s: rows.map(({ sha256 }) => sha256),
      });
      return { nodeId, secret };
    },
    enroll: ({ nodeId, secret }, key = newKey()) =>
      exchange(gateway.enrollUrl, '/v1/enroll', {
        ca: pki.bundlePem,
        body: { node_id: nodeId, enrollment_secret: secret, csr_pem: createCsr(nodeId, key) },
      }),
    async queue(target, maxAttempts = 3) {
      const jobId = randomUUID();
      await operate(queueJobCommand, {
        job_id: jobId,
        kind: 'diagnose_host',
        node_id: 'nodeId' in target ? target.nodeId : null,
        pool: 'pool' in target ? target.pool : null,
        org_id: null,
        payload: '{}',
        payload_sha256: hash('sha256', '{}'),
        max_attempts: maxAttempts,
      });
      return jobId;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(gateways.map((each) => each.close()));
      await operator.close();
      await database.drop();
      await folder[Symbol.asyncDispose]();
    },
  };
  return {
    ...fleet,
    async agent(pool) {
      const node = await fleet.provision(pool);
      const key = newKey();
      const answered = await fleet.enroll(node, key);
      if (answered.status !== 200) throw new Error(`enrolment was answered ${answered.status}: ${answered.text}`);
      const { certificate_pem: cert } = answered.body as { certificate_pem: string };
      return { ...node, ca: pki.bundlePem, cert, key: pemOf(key) };
    },
  };
}

/** Makes a node schedulable, for jobs of its pool. */
export async function admit(fleet: TestFleet, nodeId: string): Promise<void> {
  await fleet.operate(admitNodeCommand, { node_id: nodeId });
}

/** The environment of a gateway on free ports of this host. */
export function gatewayEnvironment(
  databaseUrl: string,
  pki: PkiPaths,
  env: Record<string, string> = {},
): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    PUSHLEFT_GATEWAY_BIND: '127.0.0.1:0',
    PUSHLEFT_AGENT_ENROLL_BIND: '127.0.0.1:0',
    PUSHLEFT_GATEWAY_ADMIN_BIND: '127.0.0.1:0',
    PUSHLEFT_GATEWAY_CERT: pki.gatewayCert,
    PUSHLEFT_GATEWAY_KEY: pki.gatewayKey,
    PUSHLEFT_AGENT_CLIENT_CA: pki.trustBundle,
    PUSHLEFT_AGENT_CA_CERT: pki.caCert,
    PUSHLEFT_AGENT_CA_KEY: pki.caKey,
    ...env,
  };
}

/** What issuing asks of PKI files that never change: these signers, the first of which is of the CA in the files. */
export function pkiOf(signer: Signer, ...more: readonly Signer[]): IssuanceServices['pki'] {
  const signers = new Map([signer, ...more].map((each) => [each.caSha256, each]));
  return { current: { signer, signers }, reload: () => Promise.resolve() };
}

/** A new P-256 key. */
export function newKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
}

/** A private key in PEM. */
function pemOf(key: KeyObject): string {
  return key.export({ format: 'pem', type: 'pkcs8' }).toString();
}
