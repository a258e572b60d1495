import { hash, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { instanceIdOf } from '../../src/domain/deployment/instance-id.ts';
import type { FleetEvent, NewEvent } from '../../src/domain/event/catalogue.ts';
import type { Pool } from '../../src/domain/fields.ts';
import { SCHEDULER } from '../../src/domain/scheduler/state.ts';
import { deploymentStream, nodeStream } from '../../src/domain/stream.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';
import { admitted, make, sample } from '../support/events.ts';
import { Random } from '../support/random.ts';
import { recordEvents } from '../support/record-events.ts';

/** How large a fleet is. Each deployment has so many instances of one service, and one hostname. */
export interface FleetSize {
  readonly nodes: number;
  readonly ingressHosts: number;
  readonly deployments: number;
  readonly instancesPerDeployment: number;
}

/** A fleet that runs: its nodes with what their agents authenticate by. */
export interface Population {
  readonly nodeIds: readonly string[];
  readonly fingerprints: ReadonlyMap<string, string>;
}

/** A node as a test wants it. */
export interface NodeWish {
  readonly pool?: Pool;
  readonly region?: string;
  readonly ingress?: boolean;
  readonly capacity?: { readonly cpu_millis: number; readonly memory_mb: number; readonly disk_gb: number };
}

/** Adds admitted nodes that were just heard; answers what their agents authenticate by, by id. */
export async function addNodes(
  pool: pg.Pool,
  transactor: Transactor,
  wishes: readonly NodeWish[],
): Promise<Map<string, string>> {
  const added = wishes.map((wish) => ({ nodeId: randomUUID(), wish }));
  const events = added.flatMap(({ nodeId, wish }) =>
    nodeEvents(nodeId, wish).map((event) => ({ stream: nodeStream(nodeId), event })),
  );
  await record(transactor, events);
  await hear(
    pool,
    added.map(({ nodeId }) => nodeId),
  );
  return new Map(added.map(({ nodeId }) => [nodeId, hash('sha256', nodeId)]));
}

/** What the clock of silence shows in the beginning, ms. */
const HEARD_MS = 1_000_000;
/** Events that are recorded at once. */
const GROUP = 900;

/** Makes a fleet in which everything runs: hosts are admitted, instances are spread evenly and ready, hostnames are served. */
export async function populate(pool: pg.Pool, transactor: Transactor, size: FleetSize): Promise<Population> {
  const random = new Random(11);
  const nodeIds = Array.from({ length: size.nodes }, () => random.uuid());
  const fingerprints = new Map(nodeIds.map((id) => [id, hash('sha256', id)]));
  const events: NewEvent[] = [];
  for (const [index, node_id] of nodeIds.entries()) {
    const told = nodeEvents(node_id, { ingress: index < size.ingressHosts });
    events.push(...told.map((event) => ({ stream: nodeStream(node_id), event })));
  }
  const slots = new Map<string, number>();
  for (let d = 0; d < size.deployments; d += 1) {
    const deployment_id = random.uuid();
    const stream = deploymentStream(deployment_id);
    const told = deploymentEvents(
      deployment_id,
      d,
      size,
      (slot) => {
        const node_id = nodeIds[(d * size.instancesPerDeployment + slot) % nodeIds.length] ?? '';
        const subnet_slot = slots.get(node_id) ?? 0;
        slots.set(node_id, subnet_slot + 1);
        return { node_id, subnet_slot };
      },
      nodeIds[d % size.ingressHosts] ?? '',
      () => random.uuid(),
    );
    events.push(...told.map((event) => ({ stream, event })));
  }
  await record(transactor, events);
  await pool.query(`INSERT INTO telemetry.scheduler (id, term, holder, heard_ms) VALUES ($1, 1, 'simulation', $2)`, [
    SCHEDULER,
    HEARD_MS,
  ]);
  await hear(pool, nodeIds);
  return { nodeIds, fingerprints };
}

/** A gateway writes that these nodes were heard now. */
export async function hear(pool: pg.Pool, nodeIds: readonly string[]): Promise<void> {
  await pool.query(
    `INSERT INTO telemetry.node_liveness (node_id, last_seen_at, heard_ms)
     SELECT node_id, clock_timestamp(), (SELECT heard_ms FROM telemetry.scheduler WHERE id = $2)
     FROM unnest($1::text[]) AS heard (node_id) ORDER BY node_id
     ON CONFLICT (node_id) DO UPDATE SET last_seen_at = excluded.last_seen_at, heard_ms = excluded.heard_ms`,
    [nodeIds, SCHEDULER],
  );
}

async function record(transactor: Transactor, events: readonly NewEvent[]): Promise<void> {
  for (let from = 0; from < events.length; from += GROUP) {
    const group = events.slice(from, from + GROUP);
    await transactor.execute(recordEvents, { events: group }, { actor: { kind: 'operator', id: 'simulation' } });
  }
}

function nodeEvents(node_id: string, wish: NodeWish): FleetEvent[] {
  const { pool = 'application', region = 'fsn1', ingress = false } = wish;
  const fingerprint = hash('sha256', node_id);
  const not_before = Date.now() - 60_000;
  const own = admitted.map(({ type, data }) => {
    const changed = {
      ...('node_id' in data ? { node_id } : {}),
      ...('certificate_id' in data ? { certificate_id: fingerprint.slice(0, 32) } : {}),
      ...('fingerprint' in data ? { fingerprint } : {}),
      ...('secret_sha256' in data ? { secret_sha256: hash('sha256', `secret of ${node_id}`) } : {}),
      ...('server_id' in data ? { server_id: Number.parseInt(fingerprint.slice(0, 8), 16) + 1 } : {}),
      ...('not_after' in data ? { not_before, not_after: not_before + 24 * 3_600_000 } : {}),
      ...('expires_at' in data ? { expires_at: Date.now() + 900_000 } : {}),
      ...(type === 'node_provisioning_requested' ? { name: `n-${node_id.slice(0, 13)}`, pool, region } : {}),
    };
    return { type, data: { ...data, ...changed } } as FleetEvent;
  });
  const facts = make('node_host_facts_changed', {
    node_id,
    runtime: 'process',
    ingress: ingress ? 'embedded' : null,
  });
  const capacity = wish.capacity ?? { cpu_millis: 4_000, memory_mb: 8_000, disk_gb: 80 };
  return [...own, make('node_capacity_recorded', { node_id, ...capacity }), facts];
}

function deploymentEvents(
  deployment_id: string,
  index: number,
  { instancesPerDeployment: count }: FleetSize,
  placeOf: (slot: number) => { node_id: string; subnet_slot: number },
  ingressNode: string,
  newId: () => string,
): FleetEvent[] {
  const [role] = sample.deployment_created.data.roles;
  if (role === undefined) throw new Error('the sample has no role');
  const hostname = `d${index}.example.com`;
  const size = { cpu_millis: 100, memory_mb: 100, disk_gb: 1 };
  const roles = [{ ...role, ...size, count }];
  const events: FleetEvent[] = [
    make('deployment_created', { deployment_id, name: `d${index}`, hostnames: [hostname], roles }),
  ];
  const instanceIds: string[] = [];
  for (let slot = 0; slot < count; slot += 1) {
    const name = { deployment_id, role: role.role, slot, generation: 1 };
    const instance_id = instanceIdOf(name);
    const { node_id, subnet_slot } = placeOf(slot);
    const onNode = { deployment_id, instance_id, node_id };
    instanceIds.push(instance_id);
    events.push(
      make('instance_requested', { ...name, instance_id }),
      make('instance_placed', { ...onNode, ...size, subnet_slot }),
      make('network_admitted', { ...onNode, job_id: newId() }),
      make('instance_ready', { ...onNode, address: '10.0.0.7', port: 40_000 + slot }),
    );
  }
  const route = { deployment_id, hostname, generation: 1, node_id: ingressNode };
  return [
    ...events,
    make('ingress_route_published', { ...route, job_id: newId(), instance_ids: instanceIds }),
    make('ingress_route_activated', route),
    make('deployment_became_live', { deployment_id }),
  ];
}
