import type { Checkpoint } from '../../src/log/checkpoint.ts';
import type { LogFault, LogVerification } from '../../src/log/prove.ts';
import { EXIT } from '../exit-code.ts';

const REASONS: Record<LogFault['reason'], string> = {
  missing: 'missing',
  hash_mismatch: 'hash mismatch',
  id_mismatch: 'id mismatch',
  column_mismatch: 'column mismatch',
  revision_mismatch: 'revision mismatch',
  unreadable: 'unreadable',
  cut_short: 'cut short',
  newer_program: 'written by a newer program; use the newer program',
  checkpoint_mismatch: 'not the hash that was signed: history up to there was rewritten',
  ends_before_checkpoint: 'missing, although a checkpoint was signed for it or for a later one',
  begins_after_checkpoint: 'a checkpoint was signed for it, but what is to be proved begins later',
};

/** A fault of the log in one line. */
export function faultLine({ position, reason }: LogFault): string {
  return `position ${position}: ${REASONS[reason]}`;
}

/** What a proof ends with: 1 for a fault, 2 when only a newer program can tell. */
export function proofExitCode(fault: LogFault | undefined): number {
  if (fault === undefined) return EXIT.done;
  return fault.reason === 'newer_program' ? EXIT.usage : EXIT.refused;
}

/** The checkpoints that the log was found to agree with. */
export function agreedCheckpoints(
  checkpoints: readonly Checkpoint[],
  { position, fault }: LogVerification,
): Checkpoint[] {
  const bad =
    fault?.reason === 'checkpoint_mismatch' || fault?.reason === 'begins_after_checkpoint' ? fault.position : undefined;
  return checkpoints
    .filter((checkpoint) => checkpoint.position <= position && (bad === undefined || checkpoint.position < bad))
    .toSorted((a, b) => a.position - b.position);
}

/** One line a checkpoint that agrees. */
export function checkpointLine({ position, signed_at, key_sha256 }: Checkpoint): string {
  return `the checkpoint at position ${position}, signed ${signed_at} by key ${key_sha256.slice(0, 16)}, agrees`;
}
