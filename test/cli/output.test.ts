import { describe, expect, test } from 'vitest';
import { ago, duration } from '../../cli/output/format.ts';
import { pairLines, tableLines } from '../../cli/output/table.ts';
import { splitSql } from '../../cli/sql/statements.ts';

describe('durations', () => {
  test.for([
    [0, '0s'],
    [-5_000, '0s'],
    [999, '0s'],
    [59_999, '59s'],
    [60_000, '1m'],
    [90_061_000, '1d 1h'],
    [86_400_000, '1d'],
    [86_459_000, '1d'],
  ] as const)('%d ms: %s', ([ms, text]) => {
    expect(duration(ms)).toBe(text);
  });

  test('never heard: says never', () => expect(ago(null, 5)).toBe('never'));
});

describe('tables', () => {
  test('columns are as wide as their widest cell, numbers end at the same place, no blanks at the end', () => {
    const rows = [
      { name: 'a', count: 10 },
      { name: 'longer', count: 9 },
    ];
    expect(
      tableLines(rows, [
        { heading: 'COUNT', value: ({ count }) => String(count), alignRight: true },
        { heading: 'NAME', value: ({ name }) => name },
      ]),
    ).toEqual(['COUNT  NAME', '   10  a', '    9  longer']);
  });

  test('pairs: values are aligned', () =>
    expect(
      pairLines([
        ['a', '1'],
        ['bcd', '2'],
      ]),
    ).toEqual(['a    1', 'bcd  2']));
});

describe('SQL is cut at semicolons', () => {
  test.for([
    ['two statements', 'SELECT 1; SELECT 2;', ['SELECT 1', 'SELECT 2'], ''],
    ['no semicolon yet', 'SELECT 1', [], 'SELECT 1'],
    ['empty statements', ';;', [], ''],
    ['in a string', `SELECT ';''';`, [`SELECT ';'''`], ''],
    ['in a name', 'SELECT 1 AS "a;b";', ['SELECT 1 AS "a;b"'], ''],
    ['in comments', 'SELECT 1 -- a;\n/* b; */;', ['SELECT 1 -- a;\n/* b; */'], ''],
    ['in a dollar quote', 'DO $x$ a; $$ b; $x$;', ['DO $x$ a; $$ b; $x$'], ''],
    ['behind an open quote', `SELECT 1; SELECT 'a;`, ['SELECT 1'], ` SELECT 'a;`],
    ['behind an open comment', 'SELECT /* 1;', [], 'SELECT /* 1;'],
  ] as const)('%s', ([, sql, statements, rest]) => {
    expect(splitSql(sql)).toEqual({ statements, rest });
  });
});
