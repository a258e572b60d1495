import { recordServerDeletedCommand } from '../commands/node.ts';
import { deleteServer } from '../hetzner/delete-server.ts';
import { type ProvisionOutcome, stopForProvider } from './outcome.ts';
import type { ProvisioningPorts, ProvisionOptions } from './ports.ts';
import { underLock } from './run.ts';

/**
 * Deletes the server of a node that is retired, by its recorded id or by its label, and records that it is gone. To be called again until
 * it is: a server that is gone, or being deleted by whomever, is progress. Never touches a server without the node's label, nor that of a
 * node that is not retired.
 */
export function deleteNodeServer(
  nodeId: string,
  ports: ProvisioningPorts,
  options: ProvisionOptions,
): Promise<ProvisionOutcome> {
  const again = `run \`pushleft-controller fleet decommission ${nodeId}\` again`;
  return underLock(
    nodeId,
    ports,
    options,
    async (run) => {
      const { name, server_id, provision_state, status } = await run.node();
      if (status !== 'retired')
        throw new Error(`the server of node ${nodeId}, which is ${status}, is not to be deleted`);
      const ended = { ok: true, nodeId, name, state: provision_state, events: run.events } as const;
      run.say('delete', server_id === null ? 'looking for a server of the node' : `deleting server ${server_id}`);
      const deleted = await deleteServer(run.api, { nodeId, serverId: server_id }, run.waiting);
      if (!deleted.ok) return run.refused(stopForProvider([deleted.refusal], again).refusals);
      if (deleted.value === 'deleting') {
        run.say('delete', 'the provider is still deleting the server');
        return ended;
      }
      const recorded = await run.append(
        'delete',
        recordServerDeletedCommand,
        { node_id: nodeId },
        'the server is gone',
      );
      return recorded.ok ? ended : run.refused(recorded.refusals);
    },
    again,
  );
}
