import type { AllocationState } from '../allocation/state.ts';
import { append, type Decision, following, nothing, refuse, replying, withBodies } from '../decision.ts';
import { lackOf } from '../deployment/place.ts';
import type { EventData } from '../event/catalogue.ts';
import { type JobToQueue, queued } from '../job/queued.ts';
import type { NodeLiveness, NodeState } from '../node/state.ts';
import type { SchedulerState } from '../scheduler/state.ts';
import { isFresh } from '../silence.ts';
import { databaseStream } from '../stream.ts';
import type { DatabaseState } from './state.ts';

/** A database as an operator asks for it, and the job that starts it on its node. */
export interface CreateDatabase {
  readonly database: EventData<'database_instance_created'>;
  readonly job: JobToQueue;
}

/** What that is decided on: databases of the name that are not over, and the node with what is held of it. */
export interface CreateDatabaseState {
  readonly named: readonly DatabaseState[];
  readonly node: NodeState | undefined;
  readonly liveness: NodeLiveness | undefined;
  readonly scheduler: SchedulerState | undefined;
  readonly allocations: readonly AllocationState[];
}

/** What two requests have to agree in to be the same. */
const ASKED = ['node_id', 'cpu_millis', 'memory_mb', 'disk_gb', 'image', 'timeout_seconds'] as const;

/**
 * Creates a database on a node that an operator chose, for good: it never moves. The same again is nothing new. Refuses:
 * database_name_taken, node_unknown, node_not_schedulable, capacity_unknown, node_full, job_target_unclear.
 */
export function createDatabase({ database, job }: CreateDatabase, state: CreateDatabaseState): Decision {
  const { database_id, name, node_id } = database;
  const [named] = state.named;
  if (named !== undefined) {
    const same = ASKED.every((field) => named[field] === database[field]) && sameWords(named.command, database.command);
    return same ? nothing({ database_id: named.database_id }) : refuse('database_name_taken', { name });
  }
  const { node } = state;
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  if (node.status !== 'active' || !node.schedulable || !isFresh(state.liveness, state.scheduler)) {
    return refuse('node_not_schedulable', { node_id });
  }
  const { cpu_millis, memory_mb, disk_gb } = node;
  if (cpu_millis === null || memory_mb === null || disk_gb === null) return refuse('capacity_unknown', { node_id });
  const lacking = lackOf('database', database, state.allocations, { cpu_millis, memory_mb, disk_gb });
  if (lacking !== undefined) return refuse('node_full', { node_id, lacking });
  if (job.node_id !== node_id || job.job_id !== database.job_id) {
    return refuse('job_target_unclear', { job_id: job.job_id });
  }
  const { events, bodies } = queued(job);
  const created = append(databaseStream(database_id), { type: 'database_instance_created', data: database });
  return replying(withBodies(following(created, events), ...bodies), { database_id });
}

/**
 * An operator gives up the data of a database whose node is lost, or has rescued it: nothing is held for it any more. Repeated: nothing new.
 * Refuses: database_unknown, database_not_stranded.
 */
export function releaseDatabase(
  { database_id }: { readonly database_id: string },
  database: DatabaseState | undefined,
): Decision {
  if (database === undefined) return refuse('database_unknown', { database: database_id });
  const { status, node_id } = database;
  if (status === 'released') return nothing();
  if (status !== 'stranded') return refuse('database_not_stranded', { database_id, status });
  return append(databaseStream(database_id), { type: 'database_instance_released', data: { database_id, node_id } });
}

function sameWords(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((word, i) => word === b[i]);
}
