import { describe, expect, test } from 'vitest';
import { nodeStream } from '../../src/domain/stream.ts';
import { seal } from '../../src/log/codec.ts';
import { readExportLine, toExportLine } from '../../src/log/export.ts';
import { type ClaimedRow, GENESIS, proveRows } from '../../src/log/prove.ts';
import { NODE, provisioned, START } from '../support/events.ts';
import { METADATA } from '../support/given.ts';

const sealed = seal(
  { ...GENESIS, at: 0 },
  provisioned.map((event) => ({ stream: nodeStream(NODE), event })),
  METADATA,
  START,
);
const rows: readonly ClaimedRow[] = sealed.map(({ event, hash, body }, i) => ({
  position: event.position,
  stream: event.stream,
  revision: i + 1,
  hash,
  body,
}));
const hashAt = (position: number) => rows[position - 1]?.hash ?? '';

async function* pages(given: readonly ClaimedRow[]) {
  yield* [given.slice(0, 2), given.slice(2)];
}

/** The fault of the history with one row changed. */
async function faultOf(position: number, changes: Partial<ClaimedRow>) {
  const changed = rows.map((row) => (row.position === position ? { ...row, ...changes } : row));
  return (await proveRows(pages(changed), GENESIS)).fault;
}

describe('a history from its first event', () => {
  test('untouched: proved to its end', async () => {
    expect(await proveRows(pages(rows), GENESIS)).toEqual({ position: 5, hash: hashAt(5), fault: undefined });
  });

  test.for([1, 2, 3, 4, 5])('the bytes of event %i edited: it is named', async (position) => {
    const body = rows[position - 1]?.body.replace('ada@ops', 'eve@ops') ?? '';
    expect(await faultOf(position, { body })).toEqual({ position, reason: 'hash_mismatch' });
  });

  test('another stream beside the bytes: named', async () => {
    expect(await faultOf(3, { stream: 'node-x' })).toEqual({ position: 3, reason: 'column_mismatch' });
  });

  test('another id beside the bytes: named', async () => {
    expect(await faultOf(3, { id: NODE })).toEqual({ position: 3, reason: 'id_mismatch' });
  });

  test('a revision left out: named', async () => {
    expect(await faultOf(4, { revision: 5 })).toEqual({ position: 4, reason: 'revision_mismatch' });
  });

  test('an event left out: named as missing', async () => {
    const { fault } = await proveRows(pages(rows.toSpliced(2, 1)), GENESIS);
    expect(fault).toEqual({ position: 3, reason: 'missing' });
  });
});

describe('a history from a later event', () => {
  test('after a point that is believed: proved to its end', async () => {
    const start = { position: 2, hash: hashAt(2) };
    expect(await proveRows(pages(rows.slice(2)), start)).toEqual({ position: 5, hash: hashAt(5), fault: undefined });
  });

  test('a revision left out: named, although the first one has to be believed', async () => {
    const later = rows.slice(2).map((row) => (row.position === 4 ? { ...row, revision: 9 } : row));
    const { fault } = await proveRows(pages(later), { position: 2, hash: hashAt(2) });
    expect(fault).toEqual({ position: 4, reason: 'revision_mismatch' });
  });
});

describe('checkpoints', () => {
  const checkpoint = (position: number, hash = hashAt(position)) => ({ position, hash });
  const proved = (given: readonly ClaimedRow[], ...checkpoints: { position: number; hash: string }[]) =>
    proveRows(
      pages(given),
      { position: (given[0]?.position ?? 1) - 1, hash: hashAt((given[0]?.position ?? 1) - 1) || GENESIS.hash },
      { checkpoints },
    );

  test('of the chain: agree', async () => {
    expect(await proved(rows, checkpoint(5), checkpoint(2))).toMatchObject({ position: 5, fault: undefined });
  });

  test('one of another chain: named, and only what an earlier one vouches for is proved', async () => {
    expect(await proved(rows, checkpoint(2), checkpoint(4, 'f'.repeat(64)))).toEqual({
      ...checkpoint(2),
      fault: { position: 4, reason: 'checkpoint_mismatch' },
    });
  });

  test('one of another chain alone: nothing is proved', async () => {
    expect(await proved(rows, checkpoint(4, 'f'.repeat(64)))).toEqual({
      ...GENESIS,
      fault: { position: 4, reason: 'checkpoint_mismatch' },
    });
  });

  test('beyond the end: what was cut off is named', async () => {
    expect((await proved(rows.slice(0, 3), checkpoint(5))).fault).toEqual({
      position: 4,
      reason: 'ends_before_checkpoint',
    });
  });

  test('of the point after which the history begins: compared with that', async () => {
    expect(await proved(rows.slice(2), checkpoint(2))).toMatchObject({ position: 5, fault: undefined });
    expect((await proved(rows.slice(2), checkpoint(2, 'f'.repeat(64)))).fault).toEqual({
      position: 2,
      reason: 'checkpoint_mismatch',
    });
  });

  test('before the history begins: cannot be compared', async () => {
    expect((await proved(rows.slice(2), checkpoint(1))).fault).toEqual({
      position: 1,
      reason: 'begins_after_checkpoint',
    });
  });
});

describe('a line of an export', () => {
  const [row] = rows;

  test('written and read again: the same event, its id beside it', () => {
    expect(row && readExportLine(toExportLine(row, GENESIS.hash))).toEqual({
      ...row,
      previous_hash: GENESIS.hash,
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-8/),
    });
  });

  test.for(['', '{}', 'null', '[]', '{"position":1'])('%s: none', (line) => {
    expect(readExportLine(line)).toBe(undefined);
  });
});
