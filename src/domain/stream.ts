import type { Pool } from './fields.ts';

/** The stream of a node and of its certificates. */
export function nodeStream(nodeId: string): string {
  return `node-${nodeId}`;
}

/** The stream of the fleet's CA. */
export const CA_STREAM = 'ca-fleet';

/** The stream of what is done with the log itself. */
export const LOG_STREAM = 'log';

/** The stream of a job. */
export function jobStream(jobId: string): string {
  return `job-${jobId}`;
}

/** The stream of a pool. */
export function poolStream(pool: Pool): string {
  return `pool-${pool}`;
}

/** The stream of a deployment, of its instances and of its routes. */
export function deploymentStream(deploymentId: string): string {
  return `deployment-${deploymentId}`;
}

/** The stream of a database. */
export function databaseStream(databaseId: string): string {
  return `database-${databaseId}`;
}

/** The stream of what concerns the fleet as a whole. */
export const FLEET_STREAM = 'fleet';
