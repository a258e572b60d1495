import { commonName } from '../certificate-check.ts';
import type { AgentConfig } from '../config.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import { GatewayClient } from '../gateway-client.ts';
import { hostFactsReader } from '../host-facts.ts';
import { type Identity, IdentityStore } from '../identity-store.ts';
import { runLeasedJob } from '../job-runner.ts';
import { diagnoseHost } from '../jobs/diagnose-host.ts';
import { runLeaseLoop } from '../lease-loop.ts';
import { LeaseMemory } from '../lease-memory.ts';
import { describeError, type Log } from '../log.ts';
import { findOpenFile } from '../private-files.ts';
import { diskFs } from '../state-fs.ts';
import { systemTime } from '../time.ts';
import { AGENT_VERSION } from '../version.ts';
import { stopOnSignals } from './stopping.ts';

/** `pushleft-agent run`: leases until SIGTERM or SIGINT, then lets the running job finish or hands it back, and exits 0. */
export async function runCommand(config: AgentConfig, log: Log): Promise<ExitCode> {
  const stopping = stopOnSignals();
  const store = new IdentityStore(diskFs, config.stateDir);
  const identity = await store.current();
  if (identity === undefined) {
    log.error({ node: config.nodeId }, 'no identity is staged: run pushleft-agent enroll first');
    return EXIT.refused;
  }
  const obstacle = await obstacleTo(config, identity);
  if (obstacle !== undefined) {
    log.error({ node: config.nodeId, reason: obstacle }, 'the staged identity is not used');
    return EXIT.refused;
  }
  const connection = new GatewayConnection(config, store, identity, log);
  const gateway = () => connection.client;
  const handlers = { diagnose_host: diagnoseHost(config) };
  const job = { gateway, handlers, time: systemTime, log, stopGraceMs: config.stopGraceSeconds * 1_000 };
  log.info({ node: config.nodeId, version: AGENT_VERSION, generation: identity.generation }, 'agent started');
  try {
    const loop = {
      gateway,
      reloadIdentity: () => connection.reload(),
      facts: hostFactsReader(config),
      memory: await LeaseMemory.open(diskFs, config.stateDir),
      runJob: (lease: Parameters<typeof runLeasedJob>[0]) => runLeasedJob(lease, job, stopping),
      time: systemTime,
      log,
      waitSeconds: config.leaseWaitSeconds,
    };
    await runLeaseLoop(loop, stopping);
  } finally {
    await connection.client.close();
  }
  log.info({ signal: stopping.reason }, 'agent stopped');
  return EXIT.done;
}

/** Why a staged identity must not be used; undefined when it may. */
async function obstacleTo({ nodeId, stateDir }: AgentConfig, identity: Identity): Promise<string | undefined> {
  if (commonName(identity.certificate) !== nodeId) return 'it is for another node than PUSHLEFT_NODE_ID';
  const open = await findOpenFile(stateDir, identity.generation);
  return open === undefined ? undefined : `${open} is open to others`;
}

/** The client of now, exchanged when another generation has been staged. */
class GatewayConnection {
  readonly #config: AgentConfig;
  readonly #store: IdentityStore;
  readonly #log: Log;
  client: GatewayClient;

  constructor(config: AgentConfig, store: IdentityStore, identity: Identity, log: Log) {
    this.#config = config;
    this.#store = store;
    this.#log = log;
    this.client = new GatewayClient(config.gatewayUrl, identity, systemTime);
  }

  /** Keeps the present client when there is no other identity, or none that can be read. */
  async reload(): Promise<void> {
    const identity = await this.#store.current().catch((error: unknown) => {
      this.#log.error({ reason: describeError(error) }, 'identity not readable');
    });
    if (identity === undefined || identity.generation === this.client.generation) return;
    const former = this.client;
    this.client = new GatewayClient(this.#config.gatewayUrl, identity, systemTime);
    this.#log.info({ generation: identity.generation }, 'another identity is staged, using it');
    await former.close();
  }
}
