import type { Logger } from 'pino';
import { createPool, type SessionLimits, WRITER_LIMITS } from '../database/connect.ts';
import { programId, removeBeacon } from '../database/programs.ts';
import { Transactor } from '../transactor/transactor.ts';
import { startAdminListener } from './admin-listener.ts';
import { startAgentListener } from './agent-listener.ts';
import { AwaitedNodes } from './awaited-nodes.ts';
import type { GatewayConfig } from './config.ts';
import { STATEMENT_MS } from './database.ts';
import { ENROLL_RATES, type EnrollRates } from './enroll-limits.ts';
import { startEnrollListener } from './enroll-listener.ts';
import { HostSightings } from './host-sightings.ts';
import type { Listener } from './listener.ts';
import { Liveness, type LivenessTime } from './liveness.ts';
import { Loader } from './loader.ts';
import { createMetrics } from './metrics.ts';
import { PkiHolder } from './pki-holder.ts';
import { pkiStatus } from './pki-status.ts';
import { type ProbeAddress, SelfProbe } from './probe.ts';
import type { Services } from './services.ts';
import type { Ticker } from './ticker.ts';
import { Turns } from './turns.ts';
import { Wakes } from './wakes.ts';
import { WorkFinder } from './work.ts';

/** A running gateway and where it listens. */
export interface Gateway {
  readonly agentUrl: string;
  readonly enrollUrl: string;
  readonly adminUrl: string;
  /** Answers those who wait, takes nothing new, decides what was asked, writes what was heard. */
  close(): Promise<void>;
}

/** What a gateway is started with besides its configuration. */
export interface GatewayOptions {
  readonly log: Logger;
  readonly rates?: EnrollRates;
  /** When the PKI files are looked at; every 2 s. */
  readonly pkiTicker?: Ticker;
  /** When what was heard is written; once a second. */
  readonly livenessTime?: LivenessTime;
}

/** Readers of a gateway make small statements only. */
const LIMITS: SessionLimits = { idleInTransactionMs: 3_000, statementMs: STATEMENT_MS, lockMs: STATEMENT_MS };
/** Lease commands of one gateway that wait for the lock at once: enough to fill a batch. */
const LEASE_TURNS = 128;

/**
 * Starts a gateway: agent, enrolment and admin listener on one database. Throws {@link GatewayConfigurationError} (one line for the
 * operator) for PKI files or addresses that cannot be used. The database may be away at the start; requests get 503 until it is there.
 */
export async function startGateway(
  config: GatewayConfig,
  { log, rates = ENROLL_RATES, pkiTicker, livenessTime }: GatewayOptions,
): Promise<Gateway> {
  const pki = await PkiHolder.open(config.pki, { log, ...(pkiTicker === undefined ? {} : { ticker: pkiTicker }) });
  const gatewayId = programId('gateway');
  const connection = { url: config.databaseUrl, program: 'gateway', limits: LIMITS };
  const pool = createPool({ ...connection, max: 8 });
  const writers = createPool({ ...connection, limits: WRITER_LIMITS, max: 1 });
  const transactor = new Transactor({
    url: config.databaseUrl,
    program: 'gateway',
    programVersion: config.programVersion,
  });
  const loader: Loader = new Loader(pool, (seconds) => metrics.tick(seconds));
  const wakes = new Wakes(loader, connection);
  const metrics = createMetrics({
    transactorQueue: () => transactor.waiting,
    waitingLeases: () => wakes.waiting,
    pki,
  });
  const listeners: Listener[] = [];
  const startedAt = new Date().toISOString();
  const status = () => ({
    ...describe(pki, listeners),
    started_at: startedAt,
    last_flush_at: iso(liveness.lastFlushAt),
  });
  const self = new SelfProbe(
    () => config.probeAddress ?? ownAddress(config, listeners[0]),
    () => pki.current.bundlePem,
    log,
  );
  const beacon = { program: gatewayId, details: status, probe: () => self.reach() };
  const liveness: Liveness = new Liveness(pool, beacon, log, livenessTime);
  const hosts = new HostSightings(pool, transactor, gatewayId, log);
  const awaited = new AwaitedNodes(pool);
  const services: Services = {
    gatewayId,
    config,
    pki,
    pool,
    writers,
    transactor,
    loader,
    work: new WorkFinder(pool),
    leaseTurns: new Turns(LEASE_TURNS),
    wakes,
    liveness,
    hosts,
    metrics,
    log,
  };
  const end = async () => {
    pki[Symbol.dispose]();
    awaited.close();
    await wakes.close();
    await Promise.all(listeners.map((listener) => listener.close()));
    await hosts.close();
    await transactor.close();
    await liveness.close();
    await removeBeacon(pool, gatewayId).catch(() => undefined);
    await Promise.all([pool.end(), writers.end()]);
  };
  let ended: Promise<void> | undefined;
  const close = () => (ended ??= end());
  try {
    wakes.start();
    await awaited.start();
    listeners.push(await startAgentListener(services));
    listeners.push(await startEnrollListener(services, { rates, awaited }));
    listeners.push(await startAdminListener(services, status));
    await liveness.start();
    hosts.start();
  } catch (error) {
    await close();
    throw error;
  }
  const [agentUrl = '', enrollUrl = '', adminUrl = ''] = listeners.map((listener) => listener.url);
  log.info({ agent: agentUrl, enroll: enrollUrl, admin: adminUrl }, 'the gateway listens');
  return { agentUrl, enrollUrl, adminUrl, close };
}

/** What the gateway says of itself, in its beacon and to the operator on its host. */
function describe(pki: PkiHolder, listeners: readonly Listener[]) {
  const [agent, enroll, admin] = listeners.map(({ url }) => url);
  return {
    addresses: { agent, enroll, admin },
    trust_bundle_sha256: pki.current.bundleSha256,
    pki: pkiStatus(pki),
  };
}

/** Where this host reaches the agent listener: one that listens on every address, on that of the host itself. */
function ownAddress({ agentBind }: GatewayConfig, listener: Listener | undefined): ProbeAddress {
  const everywhere: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  return { host: everywhere[agentBind.host] ?? agentBind.host, port: listener?.port ?? agentBind.port };
}

function iso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
