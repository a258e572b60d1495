/**
 * The lexical things of SQL in which a semicolon does not end a statement (PostgreSQL manual, 4.1), and the semicolon itself. In an
 * E'…' string a backslash takes the next character with it. A word is a thing of its own, so that neither the e of `name'…'` nor the
 * dollars of `a$b$` begin anything. A comment's end is looked for by {@link commentEnd}, since comments nest.
 */
const TOKENS =
  /[eE]'(?:[^'\\]|''|\\[\s\S])*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\$([A-Za-z_\x80-\uffff][A-Za-z_0-9\x80-\uffff]*)?\$[\s\S]*?\$\1\$|(?<comment>\/\*)|(?<open>[eE]?'|"|\$(?:[A-Za-z_\x80-\uffff][A-Za-z_0-9\x80-\uffff]*)?\$)|[A-Za-z_\x80-\uffff][A-Za-z_0-9$\x80-\uffff]*|;/g;

/** Text cut into whole statements, and what follows the last semicolon. */
export interface SplitSql {
  readonly statements: readonly string[];
  readonly rest: string;
}

/** Cuts SQL at its semicolons. A quote, comment or dollar quote that is still open keeps everything after it in `rest`. */
export function splitSql(sql: string): SplitSql {
  const statements: string[] = [];
  const tokens = new RegExp(TOKENS);
  let start = 0;
  for (let token = tokens.exec(sql); token !== null; token = tokens.exec(sql)) {
    if (token.groups?.['open'] !== undefined) break;
    if (token.groups?.['comment'] !== undefined) {
      const end = commentEnd(sql, token.index);
      if (end === undefined) break;
      tokens.lastIndex = end;
    }
    if (token[0] !== ';') continue;
    const statement = sql.slice(start, token.index).trim();
    if (statement !== '') statements.push(statement);
    start = token.index + 1;
  }
  return { statements, rest: sql.slice(start) };
}

/** Where the comment that begins at `from` ends, with all comments inside it; undefined while it is open. */
function commentEnd(sql: string, from: number): number | undefined {
  const marks = /\/\*|\*\//g;
  marks.lastIndex = from;
  let depth = 0;
  for (let mark = marks.exec(sql); mark !== null; mark = marks.exec(sql)) {
    depth += mark[0] === '/*' ? 1 : -1;
    if (depth === 0) return marks.lastIndex;
  }
  return undefined;
}
