import { pairLines, tableLines } from './table.ts';

/** A part of a report that is printed as text or as Markdown: facts, then tables. */
export interface Section {
  readonly title: string;
  readonly pairs: readonly (readonly [name: string, value: string])[];
  readonly tables: readonly SectionTable[];
}

/** A table of a section; `none` is said instead of an empty one. */
interface SectionTable {
  readonly heading: string;
  readonly none: string;
  readonly columns: readonly { readonly heading: string; readonly alignRight: boolean }[];
  readonly rows: readonly (readonly string[])[];
}

/** A section as plain text. */
export function sectionText({ title, pairs, tables }: Section): string[] {
  return [
    title,
    ...indented(pairLines(pairs)),
    ...tables.flatMap((table) => ['', `  ${table.heading}`, ...indented(indented(textRows(table)))]),
  ];
}

function textRows({ none, columns, rows }: SectionTable): string[] {
  if (rows.length === 0) return [none];
  return tableLines(
    rows,
    columns.map((column, i) => ({ ...column, value: (row) => row[i] ?? '' })),
  );
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

/** A section as Markdown (with the tables of GitHub's dialect). */
export function sectionMarkdown({ title, pairs, tables }: Section): string[] {
  return [
    `## ${title}`,
    '',
    ...pairs.map(([name, value]) => `- **${name}**: ${escaped(value)}`),
    ...tables.flatMap((table) => ['', `### ${table.heading}`, '', ...markdownRows(table)]),
  ];
}

function markdownRows({ none, columns, rows }: SectionTable): string[] {
  if (rows.length === 0) return [none];
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    line(columns.map(({ heading }) => heading)),
    line(columns.map(({ alignRight }) => (alignRight ? '---:' : '---'))),
    ...rows.map((row) => line(row.map(escaped))),
  ];
}

/** Names and labels in a report come from elsewhere: none may draw a table, a link or a tag of its own. */
function escaped(text: string): string {
  return text.replaceAll(/[\\`*_{}[\]<>|#!~&]/g, String.raw`\$&`);
}
