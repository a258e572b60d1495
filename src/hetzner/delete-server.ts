import type { HetznerApi } from './api.ts';
import { hasCode } from './errors.ts';
import { NODE_ID_LABEL } from './labels.ts';
import { accepted, type HetznerResult, refused } from './refusal.ts';
import type { Server } from './resources.ts';
import { awaitActions, describeAction, type Waiting } from './waiting.ts';

/** `gone`: nothing is left and nothing is billed. `deleting`: under way; the name stays taken until it is gone. */
export type Deletion = 'gone' | 'deleting';

/**
 * Deletes the server of a node, by recorded id or, without one, by label. Idempotent: a server that is gone or being deleted is no
 * error. Never touches a server without the node's label (`server_not_ours`); also refuses `server_protected` and `server_delete_failed`.
 */
export async function deleteServer(
  api: HetznerApi,
  { nodeId, serverId }: { nodeId: string; serverId: number | null },
  waiting: Waiting,
): Promise<HetznerResult<Deletion>> {
  const servers = serverId === null ? await api.findServersOfNode(nodeId) : [await api.getServer(serverId)];
  let deletion: Deletion = 'gone';
  for (const server of servers) {
    if (server === undefined) continue;
    const outcome = await deleteOne(api, nodeId, server, waiting);
    if (!outcome.ok) return outcome;
    if (outcome.value === 'deleting') deletion = 'deleting';
  }
  return accepted(deletion);
}

async function deleteOne(
  api: HetznerApi,
  nodeId: string,
  server: Server,
  waiting: Waiting,
): Promise<HetznerResult<Deletion>> {
  const named = `server ${server.name} (${server.id})`;
  if (server.labels[NODE_ID_LABEL] !== nodeId)
    return refused('server_not_ours', `${named} does not carry the label of node ${nodeId}; it is left alone`);
  if (server.status === 'deleting') return accepted('deleting');
  try {
    const action = await api.deleteServer(server.id);
    if (action === undefined) return accepted('gone');
    const outcome = await awaitActions(api, [action], waiting);
    if (outcome.state === 'failed')
      return refused('server_delete_failed', `${named} was not deleted: ${describeAction(outcome.action)}`);
    return accepted(outcome.state === 'succeeded' ? 'gone' : 'deleting');
  } catch (error) {
    if (hasCode(error, 'protected'))
      return refused('server_protected', `${named} is protected from deletion; lift the protection first`);
    throw error;
  }
}
