/** A column of a table: its heading and how a row shows in it. Numbers read best when they end at the same place. */
export interface TableColumn<R> {
  readonly heading: string;
  readonly value: (row: R) => string;
  readonly alignRight?: boolean;
}

/** Lines of a table: headings, then one line a row, columns two spaces apart. Without rows there are only headings. */
export function tableLines<R>(rows: readonly R[], columns: readonly TableColumn<R>[]): string[] {
  const cells = [columns.map(({ heading }) => heading), ...rows.map((row) => columns.map(({ value }) => value(row)))];
  const widths = columns.map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0)));
  return cells.map((line) =>
    line
      .map((cell, i) => (columns[i]?.alignRight === true ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

/** Lines of `name  value` pairs, names aligned. */
export function pairLines(pairs: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(0, ...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${value}`.trimEnd());
}
