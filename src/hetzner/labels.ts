import type { Pool } from '../domain/fields.ts';

/** Label that ties a server to its node; the only ground on which a server is ever adopted or deleted. */
export const NODE_ID_LABEL = 'pushleft.node_id';
const ORGANIZATION_LABEL = 'pushleft.org';
const POOL_LABEL = 'pushleft.pool';

/** Labels of a pool's firewall. */
export function poolLabels(pool: Pool): Readonly<Record<string, string>> {
  return { [ORGANIZATION_LABEL]: 'platform', [POOL_LABEL]: pool };
}

/** Labels of a node's server. Requirement, Provisioning. */
export function nodeLabels(nodeId: string, pool: Pool): Readonly<Record<string, string>> {
  return { [NODE_ID_LABEL]: nodeId, ...poolLabels(pool) };
}

/** True when every one of the labels is there with its value. */
export function carriesLabels(
  labels: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(wanted).every(([key, value]) => labels[key] === value);
}
