import type { NetworkAttachmentState } from '../src/domain/deployment/state.ts';
import type { RecordedOf, Recording } from '../src/domain/event/recorded.ts';
import { defineProjection, type Key, replaces, updates, updatesEach } from './projection.ts';
import { defineTable, integer, text, timestamp } from './table.ts';

const table = defineTable<NetworkAttachmentState>()({
  name: 'network_attachment_requests',
  key: 'attachment_id',
  columns: {
    attachment_id: text,
    deployment_id: text,
    instance_id: text,
    node_id: text,
    subnet_slot: integer,
    status: text,
    requested_at: timestamp,
    heard_at: timestamp.orNull,
    closed_at: timestamp.orNull,
  },
  indexes: [{ name: 'network_attachment_requests_node', columns: ['node_id', 'subnet_slot'], unique: true }],
});

/** An instance asks once a node: put back and placed there again, it asks anew, for another slot. */
const key = ({ data }: { data: { instance_id: string; node_id: string | null } }): Key =>
  `${data.instance_id}/${data.node_id}`;

const close = (row: NetworkAttachmentState, { at }: Recording): NetworkAttachmentState => ({
  ...row,
  status: 'closed',
  closed_at: at,
});

const reclaimed = updatesEach<NetworkAttachmentState, RecordedOf<'node_lost'> | RecordedOf<'node_revoked'>>(
  ({ data }) =>
    data.released_allocation_ids
      .filter((id) => id.endsWith('/network'))
      .map((id) => `${id.slice(0, -'/network'.length)}/${data.node_id}`),
  close,
);

/** One row a request of a network. Slots are kept for ever, so that none is used twice (fleet_nodes counts them). */
export const networkAttachmentRequests = defineProjection(table, {
  instance_placed: replaces(
    (e) => key(e),
    ({ at, data }): NetworkAttachmentState => ({
      attachment_id: `${data.instance_id}/${data.node_id}`,
      deployment_id: data.deployment_id,
      instance_id: data.instance_id,
      node_id: data.node_id,
      subnet_slot: data.subnet_slot,
      status: 'requested',
      requested_at: at,
      heard_at: null,
      closed_at: null,
    }),
  ),
  network_admitted: updates(
    (e) => key(e),
    (row, { data }) => ({ ...row, status: 'admitted', heard_at: data.heard_at }),
  ),
  instance_unplaced: updates((e: RecordedOf<'instance_unplaced'>) => key(e), close),
  instance_done: updates((e: RecordedOf<'instance_done'>) => key(e), close),
  instance_removed: updatesEach(
    (event: RecordedOf<'instance_removed'>) => (event.data.node_id === null ? [] : [key(event)]),
    close,
  ),
  node_lost: reclaimed,
  node_revoked: reclaimed,
});
