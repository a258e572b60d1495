import {
  type CreateDatabase,
  type CreateDatabaseState,
  createDatabase,
  releaseDatabase,
} from '../domain/database/create.ts';
import type { DatabaseState } from '../domain/database/state.ts';
import { SCHEDULER } from '../domain/scheduler/state.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import { activeAllocationsOfNode, databasesByName } from '../transactor/finders.ts';

/** See {@link createDatabase}. */
export const createDatabaseCommand: CommandDefinition<CreateDatabase, CreateDatabaseState> = {
  name: 'create_database',
  async load(rows, { database: { name, node_id } }) {
    const [named, node, liveness, scheduler, allocations] = await Promise.all([
      rows.find(databasesByName, { name, statuses: ['creating', 'ready', 'error', 'stranded'] }),
      rows.get('fleet_nodes', node_id),
      rows.get('node_liveness', node_id),
      rows.get('scheduler', SCHEDULER),
      rows.find(activeAllocationsOfNode, { node_id }),
    ]);
    return { named, node, liveness, scheduler, allocations };
  },
  decide: createDatabase,
};

/** See {@link releaseDatabase}. */
export const releaseDatabaseCommand: CommandDefinition<{ readonly database_id: string }, DatabaseState | undefined> = {
  name: 'release_database',
  load: (rows, { database_id }) => rows.get('database_instances', database_id),
  decide: releaseDatabase,
};
