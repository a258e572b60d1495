import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { admitNodeCommand } from '../commands/node.ts';
import type { Pool } from '../domain/fields.ts';
import type { NodeState } from '../domain/node/state.ts';
import { describeRefusal } from '../domain/refusal.ts';
import { readProvisioningSettings } from '../provisioning/config.ts';
import type { ProvisionOutcome } from '../provisioning/outcome.ts';
import type { ProvisioningPorts, ProvisionOptions } from '../provisioning/ports.ts';
import { provisionNode, resumeNode, retryNode } from '../provisioning/provision.ts';
import { systemPorts } from '../provisioning/system-ports.ts';
import { columns, readDatabase } from '../read/database.ts';
import type { CommandActor } from '../transactor/command.ts';
import type { Transactor } from '../transactor/transactor.ts';
import type { RunningFleet } from './fleet.ts';
import { lastLogLines } from './log-file.ts';
import { agentLog } from './machines.ts';

/** What nodes are made with: the fleet, and an operator's means. */
export interface NodeMaker {
  readonly fleet: RunningFleet;
  readonly transactor: Transactor;
  readonly actor: CommandActor;
  readonly signal: AbortSignal;
  /** Called with one line for each step. */
  readonly say: (line: string) => void;
}

interface WantedNode {
  readonly name: string;
  readonly pool: Pool;
}

/** A local agent enrols in seconds; one that has not after this time never will. */
const ENROLL_DEADLINE_MS = 180_000;
const ADMIT_RETRY_MS = 250;
const REGION = 'fsn1';
const IMAGE = 'ubuntu-24.04';

/** The nodes of a fleet of this size: two for applications, one for builds, and so on. Names stay the same from start to start. */
export function wantedNodes(count: number): readonly WantedNode[] {
  return Array.from({ length: count }, (_, i) => {
    const pool: Pool = i % 3 === 2 ? 'build' : 'application';
    return { name: `${pool === 'build' ? 'build' : 'app'}-${REGION}-${i + 1}`, pool };
  });
}

/**
 * Brings every wanted node to where it is enrolled and admitted, all at once, from wherever it is. Throws one line for the first that
 * cannot be brought there, naming the log of its agent.
 */
export async function ensureNodes(maker: NodeMaker, count: number): Promise<readonly NodeState[]> {
  const { fleet, transactor, actor, signal } = maker;
  const read = readProvisioningSettings(fleet.environments.operator);
  if (!read.ok) throw new Error(read.message);
  const databaseUrl = fleet.environments.operator['DATABASE_URL'] ?? '';
  const ports = systemPorts({ databaseUrl, pool: fleet.pool, transactor, actor, settings: read.settings });
  const failing = new AbortController();
  const together = AbortSignal.any([signal, failing.signal]);
  const settled = await Promise.allSettled(
    wantedNodes(count).map(async (wanted) => {
      try {
        return await ensureNode({ ...maker, signal: together }, ports, wanted);
      } catch (error) {
        // The others are not worth waiting for, and their trouble is most likely the same.
        failing.abort(error);
        throw error;
      }
    }),
  );
  signal.throwIfAborted();
  failing.signal.throwIfAborted();
  return settled.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
}

async function ensureNode(maker: NodeMaker, ports: ProvisioningPorts, wanted: WantedNode): Promise<NodeState> {
  const { fleet, say } = maker;
  const signal = AbortSignal.any([maker.signal, AbortSignal.timeout(ENROLL_DEADLINE_MS)]);
  const outcome = await provision(ports, await findNode(fleet.pool, wanted.name), wanted, {
    signal,
    onProgress: ({ message }) => say(`${wanted.name}: ${message}`),
  });
  const node = await findNode(fleet.pool, wanted.name);
  if (!outcome.ok) {
    maker.signal.throwIfAborted();
    const reasons = outcome.refusals.map(({ message }) => message).join('; ');
    throw new Error(`${wanted.name}: ${reasons}${await lastWords(fleet, node)}`);
  }
  if (node === undefined) throw new Error(`${wanted.name} was provisioned and has no row`);
  await admit(maker, node);
  return node;
}

/** A node that failed begins again: its server is deleted first. */
function provision(
  ports: ProvisioningPorts,
  known: NodeState | undefined,
  { name, pool }: WantedNode,
  options: ProvisionOptions,
): Promise<ProvisionOutcome> {
  if (known?.provision_state === 'failed') return retryNode(ports, known.node_id, options);
  if (known !== undefined) return resumeNode(ports, known.node_id, options);
  const request = { name, pool, region: REGION, serverType: 'cx23', image: IMAGE, placementGroup: null };
  return provisionNode(ports, request, options);
}

/** One that enrolled in an earlier start has to be heard again first. */
async function admit({ transactor, actor, signal, say }: NodeMaker, { node_id, name }: NodeState): Promise<void> {
  for (;;) {
    const outcome = await transactor.execute(admitNodeCommand, { node_id }, { actor });
    if (outcome.ok) {
      if (outcome.events.length > 0) say(`${name}: admitted`);
      return;
    }
    if (outcome.refusal.code !== 'node_silent') {
      throw new Error(`${name} is not admitted: ${describeRefusal(outcome.refusal).message}`);
    }
    await delay(ADMIT_RETRY_MS, undefined, { signal });
  }
}

async function findNode(pool: pg.Pool, name: string): Promise<NodeState | undefined> {
  return readDatabase(pool)
    .selectFrom('fleet.fleet_nodes')
    .select(columns('fleet_nodes'))
    .where('name', '=', name)
    .executeTakeFirst();
}

async function lastWords({ paths }: RunningFleet, node: NodeState | undefined): Promise<string> {
  const machines = paths['machines'];
  if (node?.server_id === null || node === undefined || machines === undefined) return '';
  const log = agentLog(machines, node.server_id);
  const last = (await lastLogLines(log)).at(-1);
  return last === undefined ? '' : `; its agent said: ${last}; its log is ${log}`;
}
