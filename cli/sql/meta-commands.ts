const TABLES = `
  SELECT schemaname AS schema, tablename AS name FROM pg_tables
  WHERE schemaname IN ('log', 'fleet', 'telemetry') ORDER BY 1, 2`;

const COLUMNS = (table: string) => `
  SELECT column_name AS column, data_type AS type, CASE is_nullable WHEN 'YES' THEN '' ELSE 'not null' END AS nullable
  FROM information_schema.columns
  WHERE table_schema IN ('log', 'fleet', 'telemetry') AND table_name = '${table}' ORDER BY ordinal_position`;

/** What a line that begins with a backslash means: SQL to run, an end, or the list of what there is. */
export type MetaCommand = { readonly sql: string } | 'quit' | 'help';

/** The lines that `\?` prints. */
export const META_HELP = [
  '\\d         list the tables',
  '\\d TABLE   list the columns of a table',
  '\\q         end (also Ctrl-D)',
  'Statements end with a semicolon and may take several lines.',
];

/** Reads a backslash command; anything unknown is `help`. */
export function metaCommand(line: string): MetaCommand {
  const [name, argument] = line.trim().split(/\s+/);
  if (name === '\\q') return 'quit';
  if (name === '\\d' && argument === undefined) return { sql: TABLES };
  const table = argument?.replace(/^(?:log|fleet|telemetry)\./, '') ?? '';
  return name === '\\d' && /^[a-z_]+$/.test(table) ? { sql: COLUMNS(table) } : 'help';
}
