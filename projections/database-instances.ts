import type { DatabaseState } from '../src/domain/database/state.ts';
import { creates, defineProjection, updates } from './projection.ts';
import { defineTable, integer, json, text, timestamp } from './table.ts';

const table = defineTable<DatabaseState>()({
  name: 'database_instances',
  key: 'database_id',
  columns: {
    database_id: text,
    name: text,
    node_id: text,
    job_id: text,
    image: text,
    command: json,
    cpu_millis: integer,
    memory_mb: integer,
    disk_gb: integer,
    timeout_seconds: integer,
    status: text,
    address: text.orNull,
    port: integer.orNull,
    failure_reason: text.orNull,
    created_at: timestamp,
    ready_at: timestamp.orNull,
    ended_at: timestamp.orNull,
  },
  indexes: [
    { name: 'database_instances_name', columns: ['name'] },
    { name: 'database_instances_node', columns: ['node_id', 'status'] },
    { name: 'database_instances_job', columns: ['job_id'] },
  ],
});

/** One row a database. None ever has another node than its first. */
export const databaseInstances = defineProjection(table, {
  database_instance_created: creates(
    (e) => e.data.database_id,
    ({ at, data }): DatabaseState => ({
      ...data,
      status: 'creating',
      address: null,
      port: null,
      failure_reason: null,
      created_at: at,
      ready_at: null,
      ended_at: null,
    }),
  ),
  database_instance_ready: updates(
    (e) => e.data.database_id,
    (row, { at, data }) => ({
      ...row,
      status: 'ready',
      address: data.address,
      port: data.port,
      failure_reason: null,
      ready_at: at,
    }),
  ),
  database_instance_failed: updates(
    (e) => e.data.database_id,
    (row, { data }) => ({ ...row, status: 'error', failure_reason: data.reason }),
  ),
  database_instance_stranded: updates(
    (e) => e.data.database_id,
    (row) => ({ ...row, status: 'stranded' }),
  ),
  database_instance_released: updates(
    (e) => e.data.database_id,
    (row, { at }) => ({ ...row, status: 'released', ended_at: at }),
  ),
});
