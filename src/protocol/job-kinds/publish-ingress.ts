import * as v from 'valibot';
import { DeploymentId } from '../identifiers.ts';
import { Endpoint, Epoch, Generation } from '../workload.ts';
import { defineJobKind } from './definition.ts';

/** Most instances behind one hostname. */
const UPSTREAMS_MAX = 256;

/** A name that HTTP requests are sent to: RFC 1123 labels in lower case, two at least. */
const Hostname = v.pipe(
  v.string(),
  v.maxLength(253),
  v.regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$/),
);

/** Points a hostname of this ingress host at these instances; none takes the hostname away. Earlier generations never come back. */
export const publishIngress = defineJobKind({
  summary: "Point a hostname of the host's ingress at instances (queued by the scheduler).",
  payload: v.strictObject({
    hostname: Hostname,
    deployment_id: DeploymentId,
    generation: Generation,
    epoch: Epoch,
    upstreams: v.pipe(v.array(v.strictObject(Endpoint)), v.maxLength(UPSTREAMS_MAX)),
  }),
  result: v.strictObject({
    /** The ingress answers for the hostname with this generation; false when it was taken away. */
    serving: v.boolean(),
  }),
});
