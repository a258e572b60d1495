import type { InstanceState } from '../src/domain/deployment/state.ts';
import type { RecordedOf } from '../src/domain/event/recorded.ts';
import { creates, defineProjection, updates, updatesEach } from './projection.ts';
import { defineTable, integer, text, timestamp } from './table.ts';

const table = defineTable<InstanceState>()({
  name: 'application_instances',
  key: 'instance_id',
  columns: {
    instance_id: text,
    deployment_id: text,
    role: text,
    slot: integer,
    generation: integer,
    replaces_instance_id: text.orNull,
    cause: text,
    status: text,
    node_id: text.orNull,
    job_id: text.orNull,
    address: text.orNull,
    port: integer.orNull,
    failure_reason: text.orNull,
    requested_at: timestamp,
    placed_at: timestamp.orNull,
    ready_at: timestamp.orNull,
    ended_at: timestamp.orNull,
    cleaned_at: timestamp.orNull,
  },
  indexes: [
    { name: 'application_instances_deployment', columns: ['deployment_id', 'status'] },
    { name: 'application_instances_node', columns: ['node_id', 'status'], where: 'node_id IS NOT NULL' },
    { name: 'application_instances_job', columns: ['job_id'], where: 'job_id IS NOT NULL' },
    {
      name: 'application_instances_unsettled',
      columns: ['status'],
      where: `status IN ('pending_placement', 'reserved')`,
    },
    // The rule is in the decisions; this is what a slot may never have twice.
    {
      name: 'application_instances_slot',
      columns: ['deployment_id', 'role', 'slot'],
      unique: true,
      where: `status IN ('ready', 'done')`,
    },
  ],
});

const unsettled = {
  replaces_instance_id: null,
  status: 'pending_placement',
  node_id: null,
  job_id: null,
  address: null,
  port: null,
  failure_reason: null,
  placed_at: null,
  ready_at: null,
  ended_at: null,
  cleaned_at: null,
} as const;

const unplaced = { status: 'pending_placement', node_id: null, job_id: null, placed_at: null } as const;

/** What a node that will not come back had of the row's kind: lost for good, or put back because nothing had been started. */
const reclaimed = updatesEach<InstanceState, RecordedOf<'node_lost'> | RecordedOf<'node_revoked'>>(
  ({ data }) => [...data.lost_instance_ids, ...data.unplaced_instance_ids],
  (row, { at, data }, instanceId) =>
    data.lost_instance_ids.includes(String(instanceId))
      ? { ...row, status: 'lost', ended_at: at }
      : { ...row, ...unplaced },
);

/** One row an instance. Lost ones stay, with the node that may still run them. */
export const applicationInstances = defineProjection(table, {
  instance_requested: creates(
    (e) => e.data.instance_id,
    ({ at, data }): InstanceState => ({ ...unsettled, ...data, cause: 'deploy', requested_at: at }),
  ),
  instance_replacement_queued: creates(
    (e) => e.data.instance_id,
    ({ at, data }): InstanceState => ({ ...unsettled, ...data, requested_at: at }),
  ),
  instance_placed: updates(
    (e) => e.data.instance_id,
    (row, { at, data }) => ({
      ...row,
      status: 'reserved',
      node_id: data.node_id,
      placed_at: at,
    }),
  ),
  instance_unplaced: updates(
    (e) => e.data.instance_id,
    (row) => ({ ...row, ...unplaced }),
  ),
  network_admitted: updates(
    (e) => e.data.instance_id,
    (row, { data }) => ({ ...row, status: 'deploying', job_id: data.job_id }),
  ),
  instance_ready: updatesEach(
    // The old one first: a slot has one that is ready (the unique index says so row by row).
    ({ data }) => [...(data.supersedes_instance_id === null ? [] : [data.supersedes_instance_id]), data.instance_id],
    (row, { at, data: { instance_id, address, port } }, key) =>
      key === instance_id
        ? { ...row, status: 'ready', address, port, failure_reason: null, ready_at: at }
        : { ...row, status: 'draining', job_id: null },
  ),
  instance_done: updates(
    (e) => e.data.instance_id,
    (row, { at }) => ({ ...row, status: 'done', ready_at: at }),
  ),
  instance_failed: updates(
    (e) => e.data.instance_id,
    (row, { data }) => ({ ...row, status: 'error', failure_reason: data.reason }),
  ),
  instance_teardown_queued: updates(
    (e) => e.data.instance_id,
    (row, { data }) => ({ ...row, status: 'draining', job_id: data.job_id }),
  ),
  instance_removed: updates(
    (e) => e.data.instance_id,
    (row, { at }) => ({ ...row, status: 'removed', ended_at: at }),
  ),
  node_lost: reclaimed,
  node_revoked: reclaimed,
  node_cleanup_confirmed: updatesEach(
    ({ data }) => data.instance_ids,
    (row, { at }) => ({ ...row, cleaned_at: at }),
  ),
});
