import * as v from 'valibot';
import { DeploymentId, Sha256Hex } from '../identifiers.ts';
import { boundedInteger } from '../text.ts';
import { CommandLine } from '../workload.ts';
import { defineJobKind } from './definition.ts';

/** Largest source archive. */
export const SOURCE_MAX_BYTES = 16 * 1024 * 1024;

/**
 * Builds a deployment's artifact: downloads the source (a tar archive) as the holder of the lease, unpacks it into a folder of its own,
 * runs the command there and digests the file that the command leaves at $ARTIFACT.
 */
export const build = defineJobKind({
  summary: "Build a deployment's artifact from its source (queued by `workload deploy`).",
  payload: v.strictObject({
    deployment_id: DeploymentId,
    source_sha256: Sha256Hex,
    source_bytes: boundedInteger(1, SOURCE_MAX_BYTES),
    command: CommandLine,
    timeout_seconds: boundedInteger(1, 86_400),
  }),
  result: v.strictObject({ artifact_sha256: Sha256Hex, artifact_bytes: boundedInteger(1, Number.MAX_SAFE_INTEGER) }),
});
