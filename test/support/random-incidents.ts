import type { RowOf, TableName } from '../../projections/registry.ts';
import {
  assessLossesCommand,
  freezeLossesCommand,
  releaseLossesCommand,
  thawLossesCommand,
} from '../../src/commands/loss.ts';
import type { DatabaseState } from '../../src/domain/database/state.ts';
import { append, nothing } from '../../src/domain/decision.ts';
import type { InstanceState } from '../../src/domain/deployment/state.ts';
import type { FleetEvent, NewEvent } from '../../src/domain/event/catalogue.ts';
import { POOLS } from '../../src/domain/fields.ts';
import { databaseStream, deploymentStream, jobStream, nodeStream } from '../../src/domain/stream.ts';
import { fieldOf } from '../../src/tables/rows.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';
import type { MemoryRows } from './memory-rows.ts';
import type { Random } from './random.ts';
import { type Order, order } from './random-orders.ts';
import { workloadSamples } from './workload-events.ts';

/** Records an event where the row that it is about is still as it was looked up, so that given twice it is recorded once. */
function record<T extends TableName>(table: T, key: string, before: RowOf<T> | undefined, event: NewEvent): Order {
  const status = statusOf(before);
  const definition: CommandDefinition<{ readonly event: NewEvent }, RowOf<T> | undefined> = {
    name: 'record_event',
    load: (rows) => rows.get(table, key),
    decide: (asked, row) => (statusOf(row) === status ? append(asked.event.stream, asked.event.event) : nothing()),
  };
  return order(definition, { event });
}

function statusOf(row: object | undefined): string {
  return JSON.stringify([row && fieldOf(row, 'status'), row && fieldOf(row, 'cleaned_at')]);
}

/** Silence is looked at, an operator says something about it, a database changes, a lost host is cleaned up, a job is given up. */
export function incident(random: Random, rows: MemoryRows): Order {
  const pool = random.pick(POOLS) ?? 'build';
  const silence = { pool, unhealthy_after_ms: 90_000 };
  const orders: readonly (() => Order | undefined)[] = [
    () => order(assessLossesCommand, silence),
    () => order(releaseLossesCommand, silence),
    () => order(freezeLossesCommand, {}),
    () => createDatabase(random, rows),
    () => changeDatabase(random, rows),
    () => changeDatabase(random, rows),
    () => cleanUp(random, rows),
    () => fence(random, rows),
  ];
  return random.pick(orders)?.() ?? order(thawLossesCommand, {});
}

/** An instance whose node is drained before anything was started on it waits for another. */
export function unplace(random: Random, instance: InstanceState | undefined): Order | undefined {
  if (!instance?.node_id || !random.percent(10)) return undefined;
  const { deployment_id, instance_id, node_id } = instance;
  const data = { deployment_id, instance_id, node_id, job_id: null, reason: 'node_draining' } as const;
  const event = { type: 'instance_unplaced', data } as const;
  return record('application_instances', instance_id, instance, { stream: deploymentStream(deployment_id), event });
}

function createDatabase(random: Random, rows: MemoryRows): Order | undefined {
  const node = random.pick([...rows.rows('fleet_nodes').values()].filter(({ status }) => status === 'active'));
  if (node === undefined) return undefined;
  const database_id = random.uuid();
  const { data } = workloadSamples.database_instance_created;
  const named = { database_id, node_id: node.node_id, job_id: random.uuid(), name: `db-${random.hex(8)}` };
  const event = { type: 'database_instance_created', data: { ...data, ...named } } as const;
  return record('database_instances', database_id, undefined, { stream: databaseStream(database_id), event });
}

/** The next thing in a database's life; none where there is nothing more to come. */
function changeDatabase(random: Random, rows: MemoryRows): Order | undefined {
  const database = random.pick([...rows.rows('database_instances').values()]);
  const event = database && nextOf(random, database);
  if (database === undefined || event === undefined) return undefined;
  const { database_id } = database;
  return record('database_instances', database_id, database, { stream: databaseStream(database_id), event });
}

function nextOf(random: Random, { database_id, node_id, status }: DatabaseState): NewEvent['event'] | undefined {
  const data = { database_id, node_id };
  switch (status) {
    case 'creating':
      return random.percent(70)
        ? { type: 'database_instance_ready', data: { ...data, address: '10.0.0.8', port: 5_432 } }
        : { type: 'database_instance_failed', data: { ...data, reason: 'job_failed' } };
    case 'error':
    case 'stranded':
      return { type: 'database_instance_released', data };
    case 'ready':
    case 'released':
      return undefined;
  }
}

function cleanUp(random: Random, rows: MemoryRows): Order | undefined {
  const left = [...rows.rows('application_instances').values()].filter(
    ({ status, cleaned_at }) => status === 'lost' && cleaned_at === null,
  );
  const instance = random.pick(left);
  if (!instance?.node_id) return undefined;
  const { node_id, instance_id } = instance;
  const event: FleetEvent = { type: 'node_cleanup_confirmed', data: { node_id, instance_ids: [instance_id] } };
  return record('application_instances', instance_id, instance, { stream: nodeStream(node_id), event });
}

/** The node of a job is gone, and the job with it. */
function fence(random: Random, rows: MemoryRows): Order | undefined {
  const waiting = [...rows.rows('jobs').values()].filter(
    ({ status, kind }) => status === 'queued' && kind === 'diagnose_host',
  );
  const job = random.pick(waiting);
  if (!job?.node_id) return undefined;
  const { job_id, node_id } = job;
  const event = { type: 'job_fenced', data: { job_id, node_id, reason: 'node_retired' } } as const;
  return record('jobs', job_id, job, { stream: jobStream(job_id), event });
}
