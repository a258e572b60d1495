import { type ExportedRow, MAX_EXPORT_LINE_BYTES, readExportLine } from '../log/export.ts';
import { type ChainPoint, type ClaimedRow, GENESIS } from '../log/prove.ts';

/** Lines are handed on in pages of about this many. */
const PAGE = 1_000;
const LINE_BREAK = 0x0a;

/** A line of an exported file cannot be read. Lines count from 1. */
export class ExportLineError extends Error {
  override readonly name = 'ExportLineError';
  readonly line: number;
  constructor(line: number, reason: string) {
    super(`line ${line}: ${reason}`);
    this.line = line;
  }
}

/** An exported log that is being read: the point after which it begins, and its events, none of which is proved yet. */
export interface OpenExport {
  readonly start: ChainPoint;
  readonly pages: AsyncIterable<readonly ClaimedRow[]>;
}

/**
 * Opens an exported file for one reading, in bounded memory. Undefined when it holds nothing. Throws {@link ExportLineError}, here or
 * while the pages are read.
 */
export async function openExport(chunks: AsyncIterable<Uint8Array>): Promise<OpenExport | undefined> {
  const pages = exportedPages(chunks);
  const first = await pages.next();
  const [row] = first.done === true ? [] : first.value;
  if (first.done === true || row === undefined) return undefined;
  if (row.previous_hash === undefined) throw new ExportLineError(1, 'lacks previous_hash');
  const start = { position: row.position - 1, hash: row.previous_hash };
  if (start.position === 0 && start.hash !== GENESIS.hash) {
    throw new ExportLineError(1, 'is the first event, but does not begin the chain');
  }
  const read = first.value;
  return {
    start,
    pages: (async function* () {
      yield read;
      yield* pages;
    })(),
  };
}

async function* exportedPages(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly ExportedRow[]> {
  let page: ExportedRow[] = [];
  try {
    let line = 0;
    for await (const text of lines(chunks)) {
      line += 1;
      page.push(toRow(line, text));
      if (page.length < PAGE) continue;
      yield page;
      page = [];
    }
  } catch (error) {
    // What came before a bad line may be bad as well, and is to be named first.
    if (error instanceof ExportLineError && page.length > 0) yield page;
    throw error;
  }
  if (page.length > 0) yield page;
}

function toRow(line: number, text: string): ExportedRow {
  const row = readExportLine(text);
  if (row === undefined) throw new ExportLineError(line, 'is no event of an exported log');
  if (line > 1 && row.previous_hash !== undefined) throw new ExportLineError(line, 'begins another export');
  return row;
}

/** Splits bytes into lines of UTF-8, each at most {@link MAX_EXPORT_LINE_BYTES}. */
async function* lines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let count = 0;
  let rest = Buffer.alloc(0);
  const decode = (bytes: Uint8Array): string => {
    count += 1;
    if (bytes.length > MAX_EXPORT_LINE_BYTES) throw tooLong(count);
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      throw new ExportLineError(count, 'is not UTF-8');
    }
  };
  for await (const chunk of chunks) {
    let bytes = Buffer.concat([rest, chunk]);
    for (let end = bytes.indexOf(LINE_BREAK); end !== -1; end = bytes.indexOf(LINE_BREAK)) {
      yield decode(bytes.subarray(0, end));
      bytes = bytes.subarray(end + 1);
    }
    if (bytes.length > MAX_EXPORT_LINE_BYTES) throw tooLong(count + 1);
    rest = bytes;
  }
  if (rest.length > 0) yield decode(rest);
}

const tooLong = (line: number) =>
  new ExportLineError(line, `is longer than an event can be (${MAX_EXPORT_LINE_BYTES} bytes)`);
