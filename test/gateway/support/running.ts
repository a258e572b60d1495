import { randomUUID } from 'node:crypto';
import { deployCommand } from '../../../src/commands/deployment.ts';
import { instanceIdOf } from '../../../src/domain/deployment/instance-id.ts';
import type { InstanceState } from '../../../src/domain/deployment/state.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import { deploymentStream } from '../../../src/domain/stream.ts';
import { workloadSamples } from '../../support/workload-events.ts';
import type { TestAgent, TestFleet } from './fleet.ts';
import { appendCommand } from './renewal.ts';

/** A deployment of services, all of which run on a node: their ids. */
export async function running(
  fleet: Pick<TestFleet, 'operate'>,
  { nodeId: node_id }: Pick<TestAgent, 'nodeId'>,
  count: number,
): Promise<readonly InstanceState['instance_id'][]> {
  const deployment_id = randomUUID();
  const [role] = workloadSamples.deployment_created.data.roles;
  if (role === undefined) throw new Error('the sample has no role');
  const created = {
    ...workloadSamples.deployment_created.data,
    deployment_id,
    name: `d-${deployment_id}`,
    hostnames: [],
  };
  const deployment = { ...created, roles: [{ ...role, count, serves_hostnames: false }] };
  await fleet.operate(deployCommand, { deployment, build: null });
  const ids = Array.from({ length: count }, (_, slot) =>
    instanceIdOf({ deployment_id, role: role.role, slot, generation: 1 }),
  );
  const events = ids.flatMap((instance_id, slot): FleetEvent[] => {
    const on = { deployment_id, instance_id, node_id };
    return [
      { type: 'instance_placed', data: { ...on, cpu_millis: 1, memory_mb: 1, disk_gb: 0, subnet_slot: slot } },
      { type: 'network_admitted', data: { ...on, heard_at: 1, job_id: randomUUID() } },
      { type: 'instance_ready', data: { ...on, address: null, port: null, supersedes_instance_id: null } },
    ];
  });
  await fleet.operate(appendCommand, { stream: deploymentStream(deployment_id), events });
  return ids;
}
