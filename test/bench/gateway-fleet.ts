import { generateKeyPairSync, hash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCsr } from '../../agent/csr.ts';
import { armSecretCommand, recordCapacityCommand, requestNodeCommand } from '../../src/commands/node.ts';
import { PKI_VARIABLES } from '../../src/gateway/config.ts';
import { ensureDevelopmentPki } from '../../src/pki/development-ca.ts';
import type { PkiPaths } from '../../src/pki/files.ts';
import type { CommandDefinition, CommandOutcome } from '../../src/transactor/command.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';
import { exchange } from '../gateway/support/client.ts';
import { execute, nodeRequest, testTransactor } from '../support/fleet.ts';
import { startChild } from './child.ts';
import type { BenchPostgres } from './postgres.ts';

/** An enrolled agent: what it presents and trusts, in PEM. */
export interface BenchAgent {
  readonly nodeId: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** A gateway in a process of its own, and agents that are enrolled with it. */
export interface GatewayFleet extends AsyncDisposable {
  readonly agentUrl: string;
  readonly agents: readonly BenchAgent[];
  readonly operator: Transactor;
  /** The environment that names the fleet's PKI files. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Starts a gateway on a fresh database and enrols agents. */
export async function startGatewayFleet(postgres: BenchPostgres, name: string, count: number): Promise<GatewayFleet> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'pushleft-bench-pki-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const pki = await ensureDevelopmentPki(folder, {
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1'],
    now: Date.now(),
  });
  const url = await postgres.createDatabase(name);
  const environment = {
    ...Object.fromEntries(
      Object.entries(PKI_VARIABLES).map(([file, variable]) => [variable, pki[file as keyof PkiPaths]]),
    ),
    DATABASE_URL: url,
    PUSHLEFT_GATEWAY_BIND: '127.0.0.1:0',
    PUSHLEFT_AGENT_ENROLL_BIND: '127.0.0.1:0',
    PUSHLEFT_GATEWAY_ADMIN_BIND: '127.0.0.1:0',
  };
  const gateway = stack.use(await startChild('gateway-child.ts', environment));
  const { agentUrl, enrollUrl } = gateway.ready as { agentUrl: string; enrollUrl: string };
  const operator = testTransactor(url);
  stack.defer(() => operator.close());
  const ca = await readFile(pki.trustBundle, 'utf8');
  const enrolling = Array.from({ length: count }, () => enrollAgent(operator, enrollUrl, ca));
  const agents = await Promise.all(enrolling);
  const owned = stack.move();
  return {
    agentUrl,
    agents,
    operator,
    environment,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Gives a command that must not be refused. */
export async function operate<C, S>(
  operator: Transactor,
  definition: CommandDefinition<C, S>,
  command: C,
): Promise<Extract<CommandOutcome, { ok: true }>> {
  const outcome = await execute(operator, definition, command);
  if (!outcome.ok) throw new Error(`${definition.name} was refused: ${outcome.refusal.code}`);
  return outcome;
}

async function enrollAgent(operator: Transactor, enrollUrl: string, ca: string): Promise<BenchAgent> {
  const nodeId = randomUUID();
  const secret = randomBytes(32);
  await operate(operator, requestNodeCommand, nodeRequest({ node_id: nodeId }));
  const capacity = { cpu_millis: 3_500, memory_mb: 7_168, disk_gb: 60, architecture: 'x86' } as const;
  await operate(operator, recordCapacityCommand, { node_id: nodeId, ...capacity });
  await operate(operator, armSecretCommand, {
    node_id: nodeId,
    secret_sha256: hash('sha256', secret),
    ttl_ms: 900_000,
    ca_sha256s: [],
  });
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { status, text, body } = await exchange(enrollUrl, '/v1/enroll', {
    ca,
    body: { node_id: nodeId, enrollment_secret: secret.toString('hex'), csr_pem: createCsr(nodeId, privateKey) },
  });
  if (status !== 200) throw new Error(`enrolment was answered ${status}: ${text}`);
  const { certificate_pem: cert } = body as { certificate_pem: string };
  return { nodeId, ca, cert, key: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString() };
}
