import type { DatabaseState, DatabaseStatus } from '../domain/database/state.ts';
import { no, ok, type Result } from '../domain/result.ts';
import { databasesByName, databasesInStatus } from '../transactor/finders.ts';
import type { FleetView } from './fleet-view.ts';

const PRESENT = ['creating', 'ready', 'error', 'stranded'] as const satisfies readonly DatabaseStatus[];
const ALL = [...PRESENT, 'released'] as const satisfies readonly DatabaseStatus[];

/** The databases that are there, or all there ever were, in the order of their names. */
export async function listDatabases({ rows }: FleetView, all: boolean): Promise<readonly DatabaseState[]> {
  const found = await rows.find(databasesInStatus, { statuses: all ? ALL : PRESENT });
  return found.toSorted((a, b) => a.name.localeCompare(b.name, 'en') || a.created_at - b.created_at);
}

/** The database that an operator means by its id or its name: of several that had the name, the last. Refuses: database_unknown. */
export async function resolveDatabase({ rows }: FleetView, reference: string): Promise<Result<DatabaseState>> {
  const [byId, named] = await Promise.all([
    rows.get('database_instances', reference),
    rows.find(databasesByName, { name: reference, statuses: ALL }),
  ]);
  const latest = named.toSorted((a, b) => b.created_at - a.created_at)[0];
  const found = byId ?? latest;
  return found === undefined ? no('database_unknown', { database: reference }) : ok(found);
}
