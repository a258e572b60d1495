import { Flags } from '@oclif/core';
import { readPublicKey } from '../src/audit/checkpoint-key.ts';
import {
  type Checkpoint,
  type CheckpointProblem,
  MAX_CHECKPOINT_BYTES,
  readCheckpoint,
} from '../src/log/checkpoint.ts';
import { EXIT } from './exit-code.ts';
import { Failure, usageFailure } from './failure.ts';
import { readBounded } from './read-bounded.ts';

/** --checkpoint and --public-key: with what the log is compared that an owner of the database could not have rewritten. */
export const checkpointFlags = {
  checkpoint: Flags.string({
    summary: 'Prove that history up to this signed checkpoint was not rewritten; may be given several times.',
    helpValue: 'FILE',
    multiple: true,
    dependsOn: ['public-key'],
  }),
  'public-key': Flags.string({
    summary: 'The public key (PEM, Ed25519) that the checkpoints have to be signed by.',
    helpValue: 'FILE',
    dependsOn: ['checkpoint'],
  }),
};

/** The values of {@link checkpointFlags}. */
interface CheckpointChoice {
  readonly checkpoint?: readonly string[] | undefined;
  readonly 'public-key'?: string | undefined;
}

const PROBLEMS: Record<CheckpointProblem, string> = {
  malformed: 'is no checkpoint of a log',
  other_key: 'was signed by another key',
  bad_signature: 'has a wrong signature: it is forged or was edited',
};

/** The checkpoints that the flags name, each with its signature checked. Throws what is to be told of a file that is not believed. */
export async function readCheckpoints(flags: CheckpointChoice): Promise<Checkpoint[]> {
  const { checkpoint: paths = [], 'public-key': keyFile } = flags;
  if (keyFile === undefined) return [];
  const publicKey = await readPublicKey(keyFile);
  if (!publicKey.ok) throw usageFailure(publicKey.message, 'make it with `openssl pkey -in KEY -pubout`');
  const read = paths.map(async (path) => {
    const checkpoint = readCheckpoint(await readBounded(path, MAX_CHECKPOINT_BYTES, 'checkpoint'), publicKey.key);
    if (typeof checkpoint !== 'string') return checkpoint;
    throw new Failure(EXIT.refused, `checkpoint_${checkpoint}`, `${path} ${PROBLEMS[checkpoint]}`);
  });
  return Promise.all(read);
}
