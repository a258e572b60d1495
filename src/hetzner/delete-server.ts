import type { HetznerApi } from './api.ts';
import { hasCode } from './errors.ts';
import { NODE_ID_LABEL } from './labels.ts';
import { accepted, type HetznerResult, refused } from './refusal.ts';
import type { Server } from './resources.ts';
import { awaitActions, describeAction, pollUntil, type Waiting } from './waiting.ts';

/** `gone`: nothing is left and nothing is billed. `deleting`: under way; the name stays taken until it is gone. */
export type Deletion = 'gone' | 'deleting';

/**
 * Deletes the server of a node, by recorded id or, without one, by label. Idempotent: a server that is gone is no error, and one that
 * is being deleted, by whomever, is waited for. Never touches a server without the node's label (`server_not_ours`); also refuses
 * `server_protected` and `server_delete_failed`.
 */
export async function deleteServer(
  api: HetznerApi,
  { nodeId, serverId }: { nodeId: string; serverId: number | null },
  waiting: Waiting,
): Promise<HetznerResult<Deletion>> {
  const serverIds = serverId === null ? (await api.findServersOfNode(nodeId)).map(({ id }) => id) : [serverId];
  let deletion: Deletion = 'gone';
  for (const id of serverIds) {
    const outcome = await deleteOne(api, nodeId, id, waiting);
    if (!outcome.ok) return outcome;
    if (outcome.value === 'deleting') deletion = 'deleting';
  }
  return accepted(deletion);
}

/** Looks, then deletes, until it is gone. A delete whose answer was lost locks the server, so that "locked" alone says nothing. */
async function deleteOne(
  api: HetznerApi,
  nodeId: string,
  serverId: number,
  waiting: Waiting,
): Promise<HetznerResult<Deletion>> {
  let last: Server | undefined;
  const outcome = await pollUntil<HetznerResult<Deletion>>(async () => {
    last = await api.getServer(serverId);
    if (last === undefined) return accepted('gone');
    if (last.labels[NODE_ID_LABEL] !== nodeId) {
      return refused('server_not_ours', `${named(last)} does not carry the label of node ${nodeId}; it is left alone`);
    }
    return last.status === 'deleting' ? undefined : await requestDeletion(api, last, waiting);
  }, waiting);
  if (outcome !== undefined) return outcome;
  if (last?.status === 'deleting') return accepted('deleting');
  return refused('server_delete_failed', `server ${serverId} stays locked by another action; try again later`);
}

/** Undefined when another action holds the server, perhaps an earlier delete. */
async function requestDeletion(
  api: HetznerApi,
  server: Server,
  waiting: Waiting,
): Promise<HetznerResult<Deletion> | undefined> {
  try {
    const action = await api.deleteServer(server.id);
    if (action === undefined) return accepted('gone');
    const outcome = await awaitActions(api, [action], waiting);
    if (outcome.state !== 'failed') return accepted(outcome.state === 'succeeded' ? 'gone' : 'deleting');
    return refused('server_delete_failed', `${named(server)} was not deleted: ${describeAction(outcome.action)}`);
  } catch (error) {
    if (hasCode(error, 'locked', 'conflict')) return undefined;
    if (!hasCode(error, 'protected')) throw error;
    return refused('server_protected', `${named(server)} is protected from deletion; lift the protection first`);
  }
}

function named({ name, id }: Server): string {
  return `server ${name} (${id})`;
}
