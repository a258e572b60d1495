import type { RowOf, TableName } from '../../projections/registry.ts';
import type { FoldState } from '../projector/fold-state.ts';
import { answerOf, type Finder, type FinderArguments, matches } from '../transactor/find.ts';
import type { Rows } from '../transactor/row-view.ts';

/** The rows of a folded past, looked up as commands look up the present. */
export function pastRows(state: FoldState): Rows {
  return {
    get: <T extends TableName>(table: T, key: string) => Promise.resolve(state.rows(table).get(key)),
    async find<T extends TableName>(find: Finder<T>, args: FinderArguments): Promise<RowOf<T>[]> {
      const found = [...state.rows(find.table).values()].filter((row) => matches(find, row, args));
      return answerOf(find, found) as RowOf<T>[];
    },
  };
}
