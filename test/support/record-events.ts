import type { NewEvent } from '../../src/domain/event/catalogue.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';

/** Records events as they are: for what happened before a test begins, and for what no command does yet. */
export const recordEvents: CommandDefinition<{ readonly events: readonly NewEvent[] }, undefined> = {
  name: 'record_events',
  load: () => Promise.resolve(undefined),
  decide: ({ events }) => ({ events, reply: {}, bodies: [] }),
};
