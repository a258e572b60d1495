import * as v from 'valibot';
import { DeploymentId, InstanceId } from '../identifiers.ts';
import { boundedInteger } from '../text.ts';
import { CommandLine, Endpoint, Epoch, Generation, ImageReference, Limits, ReadinessPath } from '../workload.ts';
import { defineJobKind } from './definition.ts';

/**
 * Starts one instance of an application, or finds it running. A service is ready when it listens on the port it was given in PORT and,
 * where a path is named, answers there; a run-once instance is done when it exits 0.
 */
export const ensureApplication = defineJobKind({
  summary: 'Run one instance of an application (queued by the scheduler).',
  payload: v.strictObject({
    instance_id: InstanceId,
    deployment_id: DeploymentId,
    generation: Generation,
    epoch: Epoch,
    run: v.picklist(['service', 'once']),
    image: ImageReference,
    command: CommandLine,
    ...Limits,
    /** Whether it listens on a port, which the host chooses and tells it in PORT. */
    listens: v.boolean(),
    readiness_path: v.nullable(ReadinessPath),
    /** How long it may take to be ready, or to be done. */
    timeout_seconds: boundedInteger(1, 86_400),
  }),
  result: v.variant('state', [
    v.strictObject({ state: v.literal('ready'), endpoint: v.nullable(v.strictObject(Endpoint)) }),
    v.strictObject({ state: v.literal('done') }),
  ]),
});
