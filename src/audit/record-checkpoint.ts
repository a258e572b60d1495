import { hash } from 'node:crypto';
import { recordCheckpointCommand } from '../commands/checkpoint.ts';
import type { EventData } from '../domain/event/catalogue.ts';
import { eventId } from '../log/chain.ts';
import type { CommandActor } from '../transactor/command.ts';
import type { Transactor } from '../transactor/transactor.ts';

/** Puts on record that a checkpoint was signed, once: the command's id is made from what was signed, so that a repeat is remembered. */
export async function recordCheckpoint(
  transactor: Transactor,
  actor: CommandActor,
  signed: EventData<'log_checkpoint_signed'>,
): Promise<void> {
  const { position, hash: chain, key_sha256 } = signed;
  const commandId = eventId(hash('sha256', `log checkpoint ${position} ${chain} ${key_sha256}`));
  await transactor.execute(recordCheckpointCommand, signed, { actor, commandId });
}
