import { hash, randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { queueJobCommand } from '../../../src/commands/job.ts';
import {
  admitNodeCommand,
  armSecretCommand,
  recordCapacityCommand,
  requestNodeCommand,
} from '../../../src/commands/node.ts';
import { sha256Hex } from '../../../src/pki/certificate.ts';
import { ensureDevelopmentPki } from '../../../src/pki/development-ca.ts';
import type { PkiPaths } from '../../../src/pki/files.ts';
import type { CommandDefinition, CommandOutcome } from '../../../src/transactor/command.ts';
import { Transactor } from '../../../src/transactor/transactor.ts';
import { type AgentProcess, startAgent } from '../../agent/support/agent-process.ts';
import { type CliRun, runCli } from '../../cli/support/run-cli.ts';
import { gatewayEnvironment } from '../../gateway/support/fleet.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { waitFor } from '../../support/wait-for.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { type GatewayProgram, startGatewayProgram, startProgram } from './program.ts';

/** A host on disk that has not enrolled: its node, its state, and the environment of its agent. */
export interface Host {
  readonly nodeId: string;
  readonly name: string;
  readonly stateDir: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Two gateways behind a balancer, a scheduler and real agents, on a PKI directory that both gateways share. */
export interface ProgramFleet extends AsyncDisposable {
  readonly folder: string;
  readonly database: TestDatabase;
  readonly pki: PkiPaths;
  /** Those that run now. */
  readonly gateways: readonly GatewayProgram[];
  readonly agentsEntrance: Balancer;
  readonly enrollEntrance: Balancer;
  /** Runs `pushleft-controller` as the operator on the gateways' host. */
  cli(...args: readonly string[]): Promise<CliRun>;
  /** Makes a node whose host has been given a secret and today's trust bundle, as its user-data would. */
  host(env?: Readonly<Record<string, string>>): Promise<Host>;
  /** Enrols a host by the real agent. */
  enroll(host: Host): Promise<void>;
  /** Starts the agent of an enrolled host; killed with the fleet. */
  run(host: Host): AgentProcess;
  give<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<CommandOutcome>;
  queueJob(): Promise<void>;
  /** Ends both gateways in order and starts them again where they were. */
  restartGateways(): Promise<void>;
  signalGateway(index: number, signal: NodeJS.Signals): void;
}

/** Starts all but agents. The CA is recorded in the log. Scheduler and gateways are told more than where things are by `schedulerEnv` and `gatewayEnv`. */
export async function startProgramFleet(
  schedulerEnv: Readonly<Record<string, string>> = {},
  gatewayEnv: Readonly<Record<string, string>> = {},
): Promise<ProgramFleet> {
  const opened = new AsyncDisposableStack();
  const { path: folder } = opened.use(await temporaryDirectory());
  const names = { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] };
  const pki = await ensureDevelopmentPki(`${folder}/pki`, { ...names, now: Date.now() });
  const database = opened.adopt(await createTestDatabase(), (created) => created.drop());
  const transactor = opened.adopt(
    new Transactor({ url: database.url, program: 'test', programVersion: '0.1.0' }),
    (created) => created.close(),
  );
  const gateways = await Promise.all([0, 1].map(() => startGatewayProgram(database.url, pki, gatewayEnv)));
  opened.defer(async () => {
    for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
  });
  const scheduler = { DATABASE_URL: database.url, PUSHLEFT_SCHEDULER_INTERVAL_SECONDS: '0.2', ...schedulerEnv };
  opened.use(startProgram('scheduler', scheduler));
  const agentsEntrance = opened.use(await startBalancer(gateways.map(({ agentPort }) => agentPort)));
  const enrollEntrance = opened.use(await startBalancer(gateways.map(({ enrollPort }) => enrollPort)));
  const agents = opened.use(new AsyncDisposableStack());
  const give: ProgramFleet['give'] = (definition, command) =>
    transactor.execute(definition, command, { actor: { kind: 'operator', id: 'test' } });
  const cli = (...args: readonly string[]) => runCli(args, { env: gatewayEnvironment(database.url, pki), cwd: folder });

  const initialized = await cli('fleet', 'ca', 'init');
  if (initialized.code !== 0) throw new Error(`fleet ca init: ${initialized.stderr}`);

  return {
    folder,
    database,
    pki,
    gateways,
    agentsEntrance,
    enrollEntrance,
    cli,
    give,
    async host(more = {}) {
      const nodeId = randomUUID();
      const name = `app-fsn1-${nodeId.slice(0, 8)}`;
      const stateDir = `${folder}/${name}`;
      const secret = randomBytes(32);
      const bundle = await readFile(pki.trustBundle, 'utf8');
      const request = { node_id: nodeId, name, pool: 'application', provider: 'hetzner', region: 'fsn1' } as const;
      const kind = { server_type: 'cx32', image: 'ubuntu-24.04', placement_group: null };
      const capacity = { cpu_millis: 3_500, memory_mb: 7_168, disk_gb: 60, architecture: 'x86' } as const;
      await give(requestNodeCommand, { ...request, ...kind });
      await give(recordCapacityCommand, { node_id: nodeId, ...capacity });
      await give(armSecretCommand, {
        node_id: nodeId,
        secret_sha256: hash('sha256', secret),
        ttl_ms: 900_000,
        ca_sha256s: fingerprintsOf(bundle),
      });
      await mkdir(`${stateDir}/data`, { recursive: true, mode: 0o700 });
      await writeFile(`${stateDir}/enrollment-secret`, `${secret.toString('hex')}\n`, { mode: 0o600 });
      await writeFile(`${stateDir}/bootstrap-ca.pem`, bundle);
      return {
        nodeId,
        name,
        stateDir,
        env: {
          PUSHLEFT_NODE_ID: nodeId,
          PUSHLEFT_AGENT_CA: `${stateDir}/bootstrap-ca.pem`,
          PUSHLEFT_GATEWAY_URL: `https://127.0.0.1:${agentsEntrance.port}`,
          PUSHLEFT_ENROLL_URL: `https://127.0.0.1:${enrollEntrance.port}`,
          PUSHLEFT_AGENT_STATE_DIR: stateDir,
          PUSHLEFT_RUNTIME: 'process',
          PUSHLEFT_DOCKER_SOCKET: `${stateDir}/no-docker.sock`,
          PUSHLEFT_AGENT_LEASE_WAIT_SECONDS: '2',
          PUSHLEFT_AGENT_RENEW_CHECK_SECONDS: '1',
          ...more,
        },
      };
    },
    async enroll({ env, name }) {
      await using agent = startAgent(['enroll'], env);
      const code = await agent.exited;
      if (code !== 0) throw new Error(`${name} did not enrol (${code}): ${agent.stderr()}`);
    },
    run({ env }) {
      return agents.use(startAgent(['run'], env));
    },
    async queueJob() {
      const payload = '{}';
      const jobId = randomUUID();
      const target = { node_id: null, pool: 'application' } as const;
      const rest = { org_id: null, payload, payload_sha256: hash('sha256', payload), max_attempts: 3 };
      await give(queueJobCommand, { job_id: jobId, kind: 'diagnose_host', ...target, ...rest });
    },
    async restartGateways() {
      for (const [i, { agentPort, enrollPort, ...gateway }] of gateways.entries()) {
        await gateway[Symbol.asyncDispose]();
        gateways[i] = await startGatewayProgram(database.url, pki, {
          ...gatewayEnv,
          PUSHLEFT_GATEWAY_BIND: `127.0.0.1:${agentPort}`,
          PUSHLEFT_AGENT_ENROLL_BIND: `127.0.0.1:${enrollPort}`,
        });
      }
    },
    signalGateway: (index, signal) => void gateways[index]?.child.kill(signal),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Waits until a node was heard and lets it take its pool's work. */
export async function admit(fleet: ProgramFleet, { nodeId, name }: Host): Promise<void> {
  await waitFor(async () => (await fleet.give(admitNodeCommand, { node_id: nodeId })).ok, {
    what: `${name} is admitted`,
    deadlineMs: 90_000,
  });
}

/** Fingerprints of the certificates of a bundle. */
export function fingerprintsOf(bundlePem: string): string[] {
  const blocks = bundlePem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => sha256Hex(new X509Certificate(block).raw));
}
