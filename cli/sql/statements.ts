/** The lexical things of SQL in which a semicolon does not end a statement (PostgreSQL manual, 4.1), and the semicolon itself. */
const TOKENS =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$([A-Za-z_][A-Za-z_0-9]*)?\$[\s\S]*?\$\1\$|(?<open>'|"|\/\*|\$(?:[A-Za-z_][A-Za-z_0-9]*)?\$)|;/g;

/** Text cut into whole statements, and what follows the last semicolon. */
export interface SplitSql {
  readonly statements: readonly string[];
  readonly rest: string;
}

/** Cuts SQL at its semicolons. A quote, comment or dollar quote that is still open keeps everything after it in `rest`. */
export function splitSql(sql: string): SplitSql {
  const statements: string[] = [];
  let start = 0;
  for (const token of sql.matchAll(TOKENS)) {
    if (token.groups?.['open'] !== undefined) break;
    if (token[0] !== ';') continue;
    const statement = sql.slice(start, token.index).trim();
    if (statement !== '') statements.push(statement);
    start = token.index + 1;
  }
  return { statements, rest: sql.slice(start) };
}
