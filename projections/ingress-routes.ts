import { type RouteState, routeId } from '../src/domain/ingress/state.ts';
import { creates, defineProjection, updates } from './projection.ts';
import { boolean, defineTable, integer, json, text, timestamp } from './table.ts';

const table = defineTable<RouteState>()({
  name: 'ingress_routes',
  key: 'route_id',
  columns: {
    route_id: text,
    hostname: text,
    generation: integer,
    deployment_id: text,
    node_id: text,
    job_id: text.orNull,
    instance_ids: json,
    relocation: boolean,
    status: text,
    failures: integer,
    failure_reason: text.orNull,
    published_at: timestamp,
    activated_at: timestamp.orNull,
    failed_at: timestamp.orNull,
    ended_at: timestamp.orNull,
  },
  indexes: [
    { name: 'ingress_routes_deployment', columns: ['deployment_id', 'status'] },
    { name: 'ingress_routes_hostname', columns: ['hostname', 'generation'] },
    { name: 'ingress_routes_node', columns: ['node_id', 'status'] },
    { name: 'ingress_routes_job', columns: ['job_id'], where: 'job_id IS NOT NULL' },
    { name: 'ingress_routes_active', columns: ['hostname'], unique: true, where: `status = 'active'` },
  ],
});

/** One row for each generation of a hostname's route. */
export const ingressRoutes = defineProjection(table, {
  ingress_route_published: creates(
    (e) => routeId(e.data),
    ({ at, data }): RouteState => ({
      ...data,
      route_id: routeId(data),
      status: 'publishing',
      failure_reason: null,
      published_at: at,
      activated_at: null,
      failed_at: null,
      ended_at: null,
    }),
  ),
  ingress_route_activated: updates(
    (e) => routeId(e.data),
    (row, { at }) => ({ ...row, status: 'active', activated_at: at }),
  ),
  ingress_route_relocated: updates(
    (e) => routeId(e.data),
    (row, { at, data }) =>
      data.to_node_id === row.node_id
        ? { ...row, status: 'removed', ended_at: at }
        : { ...row, status: 'draining', job_id: null },
  ),
  ingress_route_failed: updates(
    (e) => routeId(e.data),
    (row, { at, data }) => ({
      ...row,
      status: 'failed',
      failures: data.failures,
      failure_reason: data.reason,
      failed_at: at,
      ended_at: at,
    }),
  ),
  ingress_route_removal_queued: updates(
    (e) => routeId(e.data),
    (row, { data }) => ({ ...row, status: 'draining', job_id: data.job_id }),
  ),
  ingress_route_removed: updates(
    (e) => routeId(e.data),
    (row, { at }) => ({ ...row, status: 'removed', ended_at: at }),
  ),
});
