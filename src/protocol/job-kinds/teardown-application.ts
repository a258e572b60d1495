import * as v from 'valibot';
import { InstanceId } from '../identifiers.ts';
import { boundedInteger } from '../text.ts';
import { Generation } from '../workload.ts';
import { defineJobKind } from './definition.ts';

/** Stops and removes one instance, if it is there and carries our labels and this generation. Nothing there is success. */
export const teardownApplication = defineJobKind({
  summary: 'Stop and remove one instance of an application (queued by the scheduler).',
  payload: v.strictObject({
    instance_id: InstanceId,
    generation: Generation,
    /** How long it may take to end by itself before it is killed. */
    grace_seconds: boundedInteger(0, 3_600),
  }),
  result: v.strictObject({
    /** False when nothing was there. */
    removed: v.boolean(),
  }),
});
