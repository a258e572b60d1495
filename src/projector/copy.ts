import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { projectionOf, type TableName } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import type { Queryable } from '../log/postgres/reader.ts';
import { fieldOf } from '../tables/rows.ts';
import { columnsOf, selectList, toCopyText } from '../tables/values.ts';

const CHUNK = 64 * 1024;

/** Writes rows into one table by COPY, in chunks. `drained` waits until the database has taken what was written. */
export interface TableCopy {
  write(row: Row): void;
  drained(): Promise<void>;
  end(): Promise<void>;
}

/**
 * Starts a COPY into a table that this transaction has made; the connection does nothing else until it ends. FREEZE spares the rows a
 * second writing by the first vacuum.
 */
export function startCopy(client: Queryable, schema: string, name: TableName): TableCopy {
  const { table } = projectionOf(name);
  const columns = columnsOf(table);
  const stream = client.query(copyFrom(`COPY ${schema}.${table.name} (${selectList(table)}) FROM STDIN (FREEZE)`));
  const failed = finished(stream);
  failed.catch(() => undefined);
  let chunk = '';
  const flush = () => {
    if (chunk !== '') stream.write(chunk);
    chunk = '';
  };
  return {
    write(row) {
      let separator = '';
      for (const [column, shape] of columns) {
        chunk += separator + toCopyText(shape, fieldOf(row, column));
        separator = '\t';
      }
      chunk += '\n';
      if (chunk.length >= CHUNK) flush();
    },
    async drained() {
      if (stream.writableNeedDrain) await Promise.race([once(stream, 'drain'), failed]);
    },
    async end() {
      flush();
      stream.end();
      await failed;
    },
  };
}
