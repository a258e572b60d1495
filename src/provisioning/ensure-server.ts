import {
  armSecretCommand,
  failProvisioningCommand,
  recordCapacityCommand,
  recordServerCommand,
} from '../commands/node.ts';
import { recordFirewallCommand } from '../commands/pool.ts';
import type { NodeState } from '../domain/node/state.ts';
import { hostCapacity } from '../hetzner/capacity.ts';
import { convergeFirewall } from '../hetzner/converge-firewall.ts';
import { findOrCreateServer, findServer } from '../hetzner/find-or-create-server.ts';
import { nodeLabels } from '../hetzner/labels.ts';
import type { HetznerRefusal } from '../hetzner/refusal.ts';
import type { ResolvedPlacement } from '../hetzner/validate.ts';
import { type CaBundle, caBundleLines } from './ca-bundle.ts';
import { newEnrollmentSecret } from './enrollment-secret.ts';
import type { NodeLock } from './node-lock.ts';
import { done, retryRemedy, type StepResult, stop, stopForProvider } from './outcome.ts';
import { resolvePlacement, userDataOf } from './plan.ts';
import type { Run } from './run.ts';

/**
 * Gives the node its one server. The look by label comes first: a server that carries it is adopted, and its user-data holds a secret
 * that was armed before it was made. Only where there is none is the placement checked and a server created.
 */
export async function ensureServer(
  run: Run,
  node: NodeState,
  lock: NodeLock,
  planned: ResolvedPlacement | undefined,
): Promise<StepResult<unknown>> {
  run.say('server', `looking for the server of ${node.name}`);
  const found = await findServer(run.api, node.node_id);
  if (found !== undefined) {
    if (!found.ok) return stopForProvider([found.refusal]);
    return recordServer(run, node, found.value.id, true);
  }
  if (node.status !== 'provisioning') {
    return stop('server_vanished', `${node.name} is ${node.status}, but no server carries its label`);
  }
  const placement =
    planned === undefined ? await resolvePlacement(run, { ...node, ...requested(node) }) : done(planned);
  if (!placement.ok) return placement;
  const firewall = await ensureFirewall(run, node);
  if (!firewall.ok) return firewall;
  const capacity = await recordCapacity(run, node.node_id, placement.value);
  if (!capacity.ok) return capacity;
  return createServer(run, node, lock, placement.value, firewall.value);
}

/** Records what jobs may use of a server of this type. */
export async function recordCapacityOf(run: Run, nodeId: string, serverType: string): Promise<StepResult<unknown>> {
  const type = (await run.api.listServerTypes()).find(({ name }) => name === serverType);
  const capacity = type === undefined ? undefined : hostCapacity(type);
  if (type === undefined || capacity === undefined) {
    return stop('server_type_gone', `the capacity of server type ${serverType} is not known any more`);
  }
  return recordCapacity(run, nodeId, { capacity, architecture: type.architecture });
}

function requested({ server_type, placement_group }: NodeState) {
  return { serverType: server_type, placementGroup: placement_group };
}

async function ensureFirewall(run: Run, { pool }: NodeState): Promise<StepResult<number>> {
  run.say('firewall', `converging firewall pushleft-${pool}`);
  const converged = await convergeFirewall(run.api, pool, run.ports.settings.operatorCidrs, run.waiting);
  if (!converged.ok) return stopForProvider([converged.refusal]);
  const { firewallId, rulesSha256, change } = converged.value;
  const recorded = await run.append(
    'firewall',
    recordFirewallCommand,
    { pool, firewall_id: firewallId, rules_sha256: rulesSha256 },
    `firewall pushleft-${pool} is ${change}`,
  );
  return recorded.ok ? done(firewallId) : recorded;
}

function recordCapacity(
  run: Run,
  nodeId: string,
  { capacity, architecture }: Pick<ResolvedPlacement, 'capacity' | 'architecture'>,
) {
  const { cpuMillis, memoryMb, diskGb } = capacity;
  return run.append(
    'capacity',
    recordCapacityCommand,
    { node_id: nodeId, cpu_millis: cpuMillis, memory_mb: memoryMb, disk_gb: diskGb, architecture },
    `jobs may use ${cpuMillis / 1_000} vCPU, ${memoryMb} MiB and ${diskGb} GB`,
  );
}

async function createServer(
  run: Run,
  node: NodeState,
  lock: NodeLock,
  placement: ResolvedPlacement,
  firewallId: number,
): Promise<StepResult<unknown>> {
  const { settings, randomBytes } = run.ports;
  const caBundle = await run.ports.readCaBundle();
  if (!caBundle.ok) return caBundle;
  const secret = newEnrollmentSecret(randomBytes);
  const rendered = userDataOf(node.node_id, settings, caBundle.value, secret.hex);
  if (!rendered.ok) return stop('user_data_invalid', rendered.problems.join('; '));
  for (const line of caBundleLines(caBundle.value)) run.say('secret', line);
  const armed = await armSecret(run, node, secret.sha256, caBundle.value);
  if (!armed.ok) return armed;
  // The moment in which two operators would make two servers.
  await lock.check();
  run.say('server', `creating server ${node.name}`);
  const { serverType, location, imageId, sshKeyIds, placementGroupId } = placement;
  const ensured = await findOrCreateServer(
    run.api,
    node.node_id,
    {
      name: node.name,
      serverType,
      location,
      imageId,
      sshKeyIds,
      firewallId,
      placementGroupId,
      labels: nodeLabels(node.node_id, node.pool),
      userData: rendered.script,
    },
    run.waiting,
  );
  if (ensured.ok) return recordServer(run, node, ensured.value.server.id, ensured.value.how === 'adopted');
  return giveUpOrResume(run, node, ensured.refusal);
}

/** A server that was made but is broken gives the node up, so that --retry deletes it; after anything else --resume goes on. */
async function giveUpOrResume(
  run: Run,
  { node_id, name }: NodeState,
  refusal: HetznerRefusal,
): Promise<StepResult<never>> {
  if (refusal.code === 'server_name_taken')
    return stopForProvider([refusal], `or free the name, then --resume ${name}`);
  if (refusal.code !== 'server_create_failed') return stopForProvider([refusal]);
  const reason = { node_id, reason: refusal.code };
  const failed = await run.append('server', failProvisioningCommand, reason, `${name} is given up`);
  return failed.ok ? stopForProvider([refusal], retryRemedy(name)) : failed;
}

/** Only the digest is ever written down; the secret itself goes into the user-data and nowhere else. */
function armSecret(run: Run, { node_id }: NodeState, secret_sha256: string, { caSha256s }: CaBundle) {
  const { secretTtlMs } = run.ports.settings;
  return run.append(
    'secret',
    armSecretCommand,
    { node_id, secret_sha256, ttl_ms: secretTtlMs, ca_sha256s: caSha256s },
    `an enrolment secret is armed for ${secretTtlMs / 1_000} s`,
  );
}

function recordServer(run: Run, { node_id, name }: NodeState, serverId: number, adopted: boolean) {
  return run.append(
    'server',
    recordServerCommand,
    { node_id, server_id: serverId, adopted },
    `server ${name} (${serverId}) is ${adopted ? 'adopted' : 'created'}`,
  );
}
