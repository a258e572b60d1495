import { type Decision, nothing, refuse, replying } from '../decision.ts';
import type { EventData, FleetEvent } from '../event/catalogue.ts';
import { type JobToQueue, queued } from '../job/queued.ts';
import type { NodeState } from '../node/state.ts';
import { deploymentStream } from '../stream.ts';
import { instanceIdOf } from './instance-id.ts';
import type { DeploymentState, DeploymentStatus } from './state.ts';

/** Deployments that hold their name and hostnames. */
export const PRESENT = [
  'building',
  'deploying',
  'live',
  'degraded',
  'removing',
] as const satisfies readonly DeploymentStatus[];

/** A deployment as an operator asks for it; the job that builds its artifact, where it has one. */
export interface Deploy {
  readonly deployment: EventData<'deployment_created'>;
  readonly build: JobToQueue | null;
}

/**
 * Creates a deployment with all its instances, which wait for a place. The same file under the same name is nothing new. Refuses:
 * deployment_name_taken, hostname_taken, member_unknown.
 */
export function deploy(
  { deployment, build }: Deploy,
  state: { present: readonly DeploymentState[]; members: readonly (NodeState | undefined)[] },
): Decision {
  const { deployment_id, name, hostnames } = deployment;
  const named = state.present.find((one) => one.name === name);
  if (named !== undefined) {
    const same = named.spec_sha256 === deployment.spec_sha256 && named.status !== 'removing';
    return same ? nothing({ deployment_id: named.deployment_id }) : refuse('deployment_name_taken', { name });
  }
  for (const hostname of hostnames) {
    const owner = state.present.find((one) => one.hostnames.includes(hostname));
    if (owner !== undefined) return refuse('hostname_taken', { hostname, deployment_id: owner.deployment_id });
  }
  const unknown = deployment.sealed_member_node_ids?.find((_, i) => state.members[i] === undefined);
  if (unknown !== undefined) return refuse('member_unknown', { node_id: unknown });
  const stream = deploymentStream(deployment_id);
  const created: FleetEvent = { type: 'deployment_created', data: deployment };
  const events = [created, ...requests(deployment)].map((event) => ({ stream, event }));
  const job = build === null ? undefined : queued(build);
  const decided = { events: [...events, ...(job?.events ?? [])], reply: {}, bodies: job?.bodies ?? [] };
  return replying(decided, { deployment_id });
}

function requests({ deployment_id, roles }: EventData<'deployment_created'>): FleetEvent[] {
  return roles.flatMap(({ role, count }) =>
    Array.from({ length: count }, (_, slot): FleetEvent => {
      const name = { deployment_id, role, slot, generation: 1 };
      return { type: 'instance_requested', data: { ...name, instance_id: instanceIdOf(name) } };
    }),
  );
}
