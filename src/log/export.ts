import * as v from 'valibot';
import { eventId } from './chain.ts';
import { MAX_EVENT_BYTES } from './codec.ts';
import type { ClaimedRow } from './prove.ts';

/** A line is at most this long: the largest event, whose quotes and backslashes are escaped once more, and what stands beside it. */
export const MAX_EXPORT_LINE_BYTES = 2 * MAX_EVENT_BYTES + 4_096;

const sha256Hex = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
const positive = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

const exportLine = v.strictObject({
  position: positive,
  stream: v.string(),
  revision: positive,
  id: v.string(),
  previous_hash: v.optional(sha256Hex),
  hash: sha256Hex,
  body: v.string(),
});

/** An event as an exported file has it; `previous_hash` stands in the first line only. */
export interface ExportedRow extends ClaimedRow {
  readonly id: string;
  readonly previous_hash?: string | undefined;
}

/**
 * An event as a line of an exported file, without its line break. `body` is the exact stored text, so that its hash can be computed
 * again; `previousHash` is given for the first line.
 */
export function toExportLine(row: ClaimedRow, previousHash?: string): string {
  const { position, stream, revision, hash, body } = row;
  return JSON.stringify({ position, stream, revision, id: eventId(hash), previous_hash: previousHash, hash, body });
}

/** Reads a line of an exported file; undefined for anything else. What it says is not proved here. */
export function readExportLine(line: string): ExportedRow | undefined {
  const read = v.safeParse(exportLine, parseJson(line));
  return read.success ? read.output : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
