import { failProvisioningCommand, recordServerRunningCommand } from '../commands/node.ts';
import type { NodeState } from '../domain/node/state.ts';
import { awaitRunning } from '../hetzner/await-running.ts';
import type { Server } from '../hetzner/resources.ts';
import { done, retryRemedy, type StepResult, stopForProvider } from './outcome.ts';
import type { Run } from './run.ts';

/** Waits until the server runs and records what the provider says of it. A server that is gone gives the node up. */
export async function awaitServer(run: Run, node: NodeState, serverId: number): Promise<StepResult<unknown>> {
  run.say('running', `waiting until server ${node.name} (${serverId}) runs`);
  const running = await awaitRunning(run.api, { id: serverId, name: node.name }, run.waiting);
  if (running.ok) return recordRunning(run, node.node_id, running.value);
  const { code } = running.refusal;
  const reason = code === 'server_vanished' ? { reason: code } : {};
  // Without a reason it is given up only when its secret has ended: one that does not start shall not be resumed for ever.
  const given = await giveUp(run, node, reason);
  if (!given.ok && node.status === 'provisioning') return given;
  const failed = given.ok && given.value['failed'] === true;
  return stopForProvider([running.refusal], failed ? retryRemedy(node.name) : null);
}

/**
 * Waits until the agent has enrolled, looking at the node's row; gives the node up when the database says that the last secret has
 * ended. The row's own times say when to ask.
 */
export async function awaitEnrollment(run: Run, node: NodeState): Promise<StepResult<unknown>> {
  const { clock, waits } = run.ports;
  run.say('enrollment', `waiting until ${node.name} enrols`);
  let askAt = lastEnd(node) ?? clock.now();
  for (let seen = node; seen.provision_state === 'awaiting_enrollment'; seen = await run.node()) {
    const now = clock.now();
    if (now >= askAt) {
      const given = await giveUp(run, node, {});
      // It may have enrolled in this very moment.
      if (!given.ok || given.value['failed'] === true) return done(undefined);
      askAt = Math.max(Number(given.value['expires_at'] ?? 0), now + waits.providerPollMs);
    }
    await clock.sleep(waits.enrollmentPollMs, run.signal);
  }
  return done(undefined);
}

function giveUp(run: Run, { node_id, name }: NodeState, reason: { reason?: 'server_vanished' }) {
  return run.append('enrollment', failProvisioningCommand, { node_id, ...reason }, `${name} is given up`);
}

/** When the last armed secret ends, ms; undefined when none is armed (it is being redeemed, or none ever was). */
function lastEnd({ armed_secrets }: NodeState): number | undefined {
  return armed_secrets.length === 0 ? undefined : Math.max(...armed_secrets.map(({ expires_at }) => expires_at));
}

function recordRunning(run: Run, nodeId: string, server: Server): Promise<StepResult<unknown>> {
  const { ipv4, ipv6 } = server.public_net;
  return run.append(
    'running',
    recordServerRunningCommand,
    {
      node_id: nodeId,
      server_id: server.id,
      server_type: server.server_type.name,
      location: server.location.name,
      image: server.image?.name ?? null,
      public_ipv4: ipv4?.ip ?? null,
      public_ipv6: ipv6?.ip ?? null,
      private_ipv4: server.private_net[0]?.ip ?? null,
    },
    `server ${server.name} runs at ${ipv4?.ip ?? ipv6?.ip ?? 'no public address'}`,
  );
}
