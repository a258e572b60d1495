import { recordCheckpoint } from '../domain/checkpoint/record.ts';
import type { EventData } from '../domain/event/catalogue.ts';
import type { CommandDefinition } from '../transactor/command.ts';

/** See {@link recordCheckpoint}. */
export const recordCheckpointCommand: CommandDefinition<EventData<'log_checkpoint_signed'>, undefined> = {
  name: 'record_checkpoint',
  load: () => Promise.resolve(undefined),
  decide: recordCheckpoint,
};
