import { expect, test } from 'vitest';
import { openExport } from '../../src/audit/read-export.ts';
import { MAX_EXPORT_LINE_BYTES } from '../../src/log/export.ts';
import { exported, rotationHistory, sealed } from '../support/rotation-history.ts';

async function* inChunks(text: string, bytes: number): AsyncGenerator<Buffer> {
  const all = Buffer.from(text);
  for (let at = 0; at < all.length; at += bytes) yield all.subarray(at, at + bytes);
}

/** Reads a file to its end. */
async function read(text: string, chunkBytes: number): Promise<number> {
  let events = 0;
  const opened = await openExport(inChunks(text, chunkBytes));
  for await (const page of opened?.pages ?? []) events += page.length;
  return events;
}

const WHOLE = exported(sealed(rotationHistory));
const EVENTS = WHOLE.split('\n').length - 1;
const overlong = 'x'.repeat(MAX_EXPORT_LINE_BYTES + 1);

test.each([7, 65_536, Number.MAX_SAFE_INTEGER])('a whole file in chunks of %d bytes: every event', async (bytes) =>
  expect(await read(WHOLE, bytes)).toBe(EVENTS),
);

test.each([
  ['in the middle, in one chunk', `${WHOLE}${overlong}\n${WHOLE}`, Number.MAX_SAFE_INTEGER],
  ['in the middle, in many chunks', `${WHOLE}${overlong}\n${WHOLE}`, 65_536],
  ['at the end, without its line break', `${WHOLE}${overlong}`, Number.MAX_SAFE_INTEGER],
  ['that never ends', `${WHOLE}${overlong.repeat(3)}`, 65_536],
])('a line that is too long %s: one message with its number', async (_, text, bytes) =>
  expect(read(text, bytes)).rejects.toThrow(
    `line ${EVENTS + 1}: is longer than an event can be (${MAX_EXPORT_LINE_BYTES} bytes)`,
  ),
);
