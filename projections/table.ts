/** How a column is stored: `timestamp` columns hold timestamptz in SQL and ms in rows, `json` any JSON value. */
export type ColumnType = 'text' | 'boolean' | 'integer' | 'bigint' | 'timestamp' | 'json';

/** A value of a row. */
export type Row = object;

/** One column: its SQL type and whether it may be null. */
export interface Column {
  readonly type: ColumnType;
  readonly nullable: boolean;
}

/**
 * The shape of a table that is written from events: DDL, upserts, COPY and comparisons all come from here.
 * `schema` fleet: a disposable fold. `schema` telemetry: decisions read it and events may write it, but others change it too, so
 * neither rebuild nor verify touch it.
 */
export interface AnyTable {
  readonly name: string;
  readonly schema: 'fleet' | 'telemetry';
  readonly key: string;
  /**
   * Where the rows are read, for a table that is no table of its own but a part of another. Such rows are written by whoever writes
   * that other table; what events make of them holds within the batch and is not written.
   */
  readonly source?: string;
  /** Others write these rows as well, so a command that reads one holds it locked until its batch commits. */
  readonly guard?: boolean;
  /** Each row is created by one event and never touched again, so a rebuild need not hold it. Exactly one table may say so. */
  readonly appendOnly?: boolean;
  readonly columns: Readonly<Record<string, Column>>;
  readonly indexes: readonly TableIndex[];
}

/** A table whose rows are `R`: each of its columns is a field of `R` and the other way round. */
export interface Table<R extends Row, N extends string = string> extends AnyTable {
  readonly name: N;
  readonly key: keyof R & string;
  readonly columns: { readonly [C in keyof R & string]: Column };
}

/** A secondary index. `where` makes it partial; `unique` is a backstop, the rule itself is in a decision. */
export interface TableIndex {
  readonly name: string;
  readonly columns: readonly string[];
  readonly unique?: boolean;
  readonly where?: string;
}

const column = (type: ColumnType) => ({ type, nullable: false });
const orNull = (type: ColumnType) => ({ type, nullable: true });

/** Column types, each also as `….orNull`. */
export const text = Object.assign(column('text'), { orNull: orNull('text') });
/** See {@link text}. */
export const boolean = Object.assign(column('boolean'), { orNull: orNull('boolean') });
/** See {@link text}. */
export const integer = Object.assign(column('integer'), { orNull: orNull('integer') });
/** See {@link text}. Rows hold it as a safe integer. */
export const bigint = Object.assign(column('bigint'), { orNull: orNull('bigint') });
/** See {@link text}. */
export const timestamp = Object.assign(column('timestamp'), { orNull: orNull('timestamp') });
/** See {@link text}. */
export const json = Object.assign(column('json'), { orNull: orNull('json') });

/** Defines a table whose rows are `R`; every column of `R` has to be there. */
export function defineTable<R extends Row>() {
  return <N extends string>(table: Omit<Table<R, N>, 'schema'> & { schema?: AnyTable['schema'] }): Table<R, N> => ({
    schema: 'fleet',
    ...table,
  });
}
