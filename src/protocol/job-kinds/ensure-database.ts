import * as v from 'valibot';
import { DatabaseId } from '../identifiers.ts';
import { boundedInteger } from '../text.ts';
import { CommandLine, Endpoint, Epoch, ImageReference, Limits } from '../workload.ts';
import { defineJobKind } from './definition.ts';

/**
 * Starts a database with a folder of its own for its data, or finds it running. The folder (DATA_DIR) is never removed by an agent. It is
 * ready when it listens on the port it was given in PORT.
 */
export const ensureDatabase = defineJobKind({
  summary: 'Run a database with its data folder (queued by `workload database create`).',
  payload: v.strictObject({
    database_id: DatabaseId,
    epoch: Epoch,
    image: ImageReference,
    command: CommandLine,
    ...Limits,
    timeout_seconds: boundedInteger(1, 86_400),
  }),
  result: v.strictObject({ endpoint: v.strictObject(Endpoint) }),
});
