import { jobKinds } from '../../src/protocol/job-kinds/registry.ts';
import { commonName } from '../certificate-check.ts';
import { Cleanup } from '../cleanup.ts';
import type { AgentConfig } from '../config.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import type { Lease } from '../gateway-answers.ts';
import { GatewayClient } from '../gateway-client.ts';
import { GatewayConnection } from '../gateway-connection.ts';
import { hostFactsReader, readBootId } from '../host-facts.ts';
import { type Identity, IdentityStore } from '../identity-store.ts';
import { createIngress } from '../ingress/create-ingress.ts';
import { type JobHandlers, runLeasedJob } from '../job-runner.ts';
import { diagnoseHost } from '../jobs/diagnose-host.ts';
import { createWorkloads } from '../jobs/workload-handlers.ts';
import { runLeaseLoop } from '../lease-loop.ts';
import { LeaseMemory } from '../lease-memory.ts';
import type { Log } from '../log.ts';
import { findOpenFile } from '../private-files.ts';
import { type RenewalLoopEnd, runRenewalLoop } from '../renewal-loop.ts';
import { tendServices } from '../runtime/tend-services.ts';
import { firstClient } from '../start-identity.ts';
import { diskFs } from '../state-fs.ts';
import { systemTime } from '../time.ts';
import { AGENT_VERSION } from '../version.ts';
import { stopOnSignals } from './stopping.ts';

/**
 * `pushleft-agent run`: leases until SIGTERM or SIGINT, then lets the running job finish or hands it back, and exits 0. Exits 3 at once
 * when an identity is staged that the gateway does not take: the service manager starts it again from the staged files.
 */
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
  await warnOfExpiry(store, identity, log);
  const connect = (staged: Identity) => new GatewayClient(config.gatewayUrl, staged, systemTime);
  const client = await firstClient(store, identity, connect, log, stopping);
  const started = { node: config.nodeId, version: AGENT_VERSION, generation: client.identity.generation };
  log.info(started, 'agent started');
  const { nodeId, gatewayUrl } = config;
  const connection = new GatewayConnection(
    { nodeId, gatewayUrl, store, time: systemTime, log },
    client,
    identity.generation,
  );
  try {
    const end = await work(config, connection, log, stopping);
    if (end.kind === 'check_failed') {
      log.error({ reason: end.reason }, 'the gateway does not take the staged identity; exiting to start anew from it');
      return EXIT.failed;
    }
  } finally {
    await connection.close();
  }
  log.info({ signal: stopping.reason }, 'agent stopped');
  return EXIT.done;
}

/** Leases, and looks after the certificate meanwhile. When one of the two ends, the other one does. */
async function work(
  config: AgentConfig,
  connection: GatewayConnection,
  log: Log,
  stopping: AbortSignal,
): Promise<RenewalLoopEnd> {
  const gateway = () => connection.client;
  const abandoned = new AbortController();
  const ending = AbortSignal.any([stopping, abandoned.signal]);
  const workloads = createWorkloads(config, gateway, systemTime);
  const ingress = await createIngress(config, systemTime, log);
  const handlers: JobHandlers = {
    diagnose_host: diagnoseHost(config),
    ...workloads.handlers,
    ...(ingress === undefined ? {} : { publish_ingress: ingress.publish }),
  };
  const job = {
    gateway,
    handlers,
    time: systemTime,
    log,
    stopGraceMs: config.stopGraceSeconds * 1_000,
    abandoned: abandoned.signal,
  };
  const leasing = {
    gateway,
    reloadIdentity: (why: { refused: boolean; signal: AbortSignal }) => connection.reload(why),
    acknowledge: (client: Pick<GatewayClient, 'identity'>) => connection.acknowledge(client),
    facts: hostFactsReader(config),
    memory: await LeaseMemory.open(diskFs, config.stateDir),
    runJob: (lease: Lease) => runLeasedJob(lease, job, ending),
    tend: async (signal: AbortSignal) => {
      await tendServices(workloads.runtime, log, signal);
      await ingress?.tend(signal);
    },
    cleanup: new Cleanup(workloads.runtime, log),
    kinds: jobKinds.filter((kind) => handlers[kind] !== undefined),
    time: systemTime,
    log,
    waitSeconds: config.leaseWaitSeconds,
    bootId: await readBootId(),
  };
  const renewing = { connection, time: systemTime, log, checkEveryMs: config.renewCheckSeconds * 1_000 };
  const abandon = () => {
    if (!stopping.aborted) abandoned.abort();
  };
  try {
    const [end] = await Promise.all([
      runRenewalLoop(renewing, ending).finally(abandon),
      runLeaseLoop(leasing, ending).finally(abandon),
    ]);
    return end;
  } finally {
    await ingress?.close();
  }
}

/** Why a staged identity must not be used; undefined when it may. */
async function obstacleTo({ nodeId, stateDir }: AgentConfig, identity: Identity): Promise<string | undefined> {
  if (commonName(identity.certificate) !== nodeId) return 'it is for another node than PUSHLEFT_NODE_ID';
  const open = await findOpenFile(stateDir, [identity.generation]);
  return open === undefined ? undefined : `${open} is open to others`;
}

/** An expired certificate is no reason to exit: its follower is taken up as soon as an enrolment has staged it. */
async function warnOfExpiry(store: IdentityStore, { certificate }: Identity, log: Log): Promise<void> {
  const notAfter = certificate.validToDate;
  if (notAfter.getTime() > systemTime.wallMs()) return;
  const remedy =
    (await store.secret()) === undefined
      ? 'carry a bundle of `fleet reenroll` here and run pushleft-agent enroll --bundle'
      : 'there is an enrolment secret: run pushleft-agent enroll';
  log.error({ not_after: notAfter.toISOString(), remedy }, 'the staged certificate has expired, or the clock is ahead');
}
