import { describe, expect, test } from 'vitest';
import { splitSql } from '../../cli/sql/statements.ts';

describe('splitSql', () => {
  test.each([
    ['two statements', 'SELECT 1; SELECT 2;'],
    ['a quote', `SELECT 'a;b'';c'; SELECT 2;`],
    ['a backslash at the end of a plain quote', `SELECT 'a\\'; SELECT 2;`],
    ['an escaped quote', `SELECT E'it\\'s; here'; SELECT 2;`],
    ['an escaped backslash at the end', `SELECT e'a\\\\'; SELECT 2;`],
    ['both ways to write a quote', `SELECT E'a''b\\';c'; SELECT 2;`],
    ['a type before a quote', `SELECT date'2026-01-01\\'; SELECT 2;`],
    ['a quoted name', `SELECT 1 AS "a;""b"; SELECT 2;`],
    ['a line comment', 'SELECT -- a;b\n1; SELECT 2;'],
    ['a comment', 'SELECT 1 /* a;b */; SELECT 2;'],
    ['nested comments', 'SELECT 1 /* a /* b; */ c; */; SELECT 2;'],
    ['a quote in a comment', `SELECT 1 /* it's; */; SELECT 2;`],
    ['a comment in a quote', `SELECT '/*'; SELECT 2;`],
    ['a dollar quote', 'SELECT $x$a;$$;b$x$; SELECT 2;'],
    ['dollars in a name', 'SELECT 1 AS a$b$; SELECT 2;'],
  ])('%s: cut where the statement ends', (_, sql) => {
    const cut = sql.lastIndexOf('; SELECT 2;');
    expect(splitSql(sql)).toEqual({ statements: [sql.slice(0, cut), 'SELECT 2'], rest: '' });
  });

  test.each([`SELECT 'a;`, `SELECT E'a\\';`, 'SELECT "a;', 'SELECT /* a;', 'SELECT /* /* a */;', 'SELECT $x$a;$$;'])(
    'still open: %s is kept',
    (sql) => expect(splitSql(`SELECT 1;${sql}`)).toEqual({ statements: ['SELECT 1'], rest: sql }),
  );
});
