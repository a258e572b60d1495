import type { DeploymentState } from '../src/domain/deployment/state.ts';
import { creates, defineProjection, updates } from './projection.ts';
import { defineTable, json, text, timestamp } from './table.ts';

const table = defineTable<DeploymentState>()({
  name: 'deployments',
  key: 'deployment_id',
  columns: {
    deployment_id: text,
    name: text,
    org_id: text,
    pool: text,
    regions: json,
    sealed_member_node_ids: json.orNull,
    roles: json,
    hostnames: json,
    build: json.orNull,
    build_job_id: text.orNull,
    spec_sha256: text,
    status: text,
    degraded_reason: text.orNull,
    failure: text.orNull,
    artifact_sha256: text.orNull,
    created_at: timestamp,
    live_at: timestamp.orNull,
    ended_at: timestamp.orNull,
  },
  indexes: [
    { name: 'deployments_name', columns: ['name'] },
    { name: 'deployments_build_job', columns: ['build_job_id'], where: 'build_job_id IS NOT NULL' },
    { name: 'deployments_status', columns: ['status'] },
  ],
});

/** One row a deployment. */
export const deployments = defineProjection(table, {
  deployment_created: creates(
    (e) => e.data.deployment_id,
    ({ at, data }): DeploymentState => ({
      ...data,
      status: data.build === null ? 'deploying' : 'building',
      degraded_reason: null,
      failure: null,
      artifact_sha256: null,
      created_at: at,
      live_at: null,
      ended_at: null,
    }),
  ),
  deployment_built: updates(
    (e) => e.data.deployment_id,
    (row, { data }) => ({
      ...row,
      status: row.status === 'building' ? 'deploying' : row.status,
      artifact_sha256: data.artifact_sha256,
    }),
  ),
  deployment_became_live: updates(
    (e) => e.data.deployment_id,
    (row, { at }) => ({ ...row, status: 'live', live_at: at }),
  ),
  deployment_degraded: updates(
    (e) => e.data.deployment_id,
    (row, { data }) => ({ ...row, status: 'degraded', degraded_reason: data.reason }),
  ),
  deployment_recovered: updates(
    (e) => e.data.deployment_id,
    (row) => ({ ...row, status: 'live', degraded_reason: null }),
  ),
  deployment_failed: updates(
    (e) => e.data.deployment_id,
    (row, { at, data }) => ({
      ...row,
      status: 'failed',
      failure: `${data.reason}: ${data.code}`,
      ended_at: at,
    }),
  ),
  deployment_removal_requested: updates(
    (e) => e.data.deployment_id,
    (row) => ({ ...row, status: 'removing', degraded_reason: null }),
  ),
  deployment_removed: updates(
    (e) => e.data.deployment_id,
    (row, { at }) => ({ ...row, status: 'removed', ended_at: at }),
  ),
});
