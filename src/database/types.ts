import pg from 'pg';

const { INT8, TIMESTAMPTZ } = pg.types.builtins;

/** Reads PostgreSQL's text form of a timestamptz (sessions are in UTC) as ms. */
function parseTimestamp(text: string): number {
  return Date.parse(`${text.slice(0, 10)}T${text.slice(11)}:00`);
}

/** How our sessions read values: bigint as a safe integer, timestamptz as ms, json and jsonb parsed. */
export const typeParsers: pg.CustomTypesConfig = {
  getTypeParser(oid: Parameters<typeof pg.types.getTypeParser>[0], format?: 'text' | 'binary') {
    if (oid === INT8) return Number;
    if (oid === TIMESTAMPTZ) return parseTimestamp;
    return pg.types.getTypeParser(oid, format);
  },
};
