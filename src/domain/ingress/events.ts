import * as v from 'valibot';
import { event } from '../event/definition.ts';
import { count, generation, hostname, instanceId, uuid } from '../fields.ts';

const route = { deployment_id: uuid, hostname, generation } as const;
const onNode = { ...route, node_id: uuid } as const;

/** Events of stream `deployment-<id>` that tell which ingress host serves a hostname, generation by generation. */
export const ingressEvents = {
  ingress_route_published: event(
    v.strictObject({
      ...onNode,
      job_id: uuid,
      instance_ids: v.pipe(v.array(instanceId), v.maxLength(256)),
      /** It replaces a route that a lost node is part of. */
      relocation: v.boolean(),
      /** How many relocations of the hostname have failed before it, since one was served. */
      failures: count,
    }),
  ),
  ingress_route_activated: event(v.strictObject(onNode)),
  /** A route that an active one has replaced: on another host it drains, on the same one it is gone. */
  ingress_route_relocated: event(v.strictObject({ ...onNode, to_generation: generation, to_node_id: uuid })),
  ingress_route_failed: event(
    v.strictObject({
      ...onNode,
      reason: v.picklist(['job_failed', 'attempts_exhausted', 'node_lost']),
      failures: count,
    }),
  ),
  ingress_route_removal_queued: event(v.strictObject({ ...onNode, job_id: uuid })),
  ingress_route_removed: event(v.strictObject(onNode)),
} as const;
