import { describe, expect, test } from 'vitest';
import { auditCa } from '../../src/audit/audit-ca.ts';
import { chainHash, eventId } from '../../src/log/chain.ts';
import { type ClaimedRow, GENESIS } from '../../src/log/prove.ts';
import { rotationHistory, sealed } from '../support/rotation-history.ts';

const rows = sealed(rotationHistory);
const last = rows.at(-1);
const head = { position: last?.position ?? 0, hash: last?.hash ?? '' };
const positions = rows.map(({ position }) => position);

async function* pages(given: readonly ClaimedRow[]) {
  yield given;
}

const audited = (given: readonly ClaimedRow[], checkpoints = [GENESIS]) =>
  auditCa(pages(given), { prove: true, checkpoints, onProgress: () => undefined });

/** The log with one event's bytes edited, in a way that its schema allows. */
function edited(position: number): ClaimedRow[] {
  return rows.map((row) =>
    row.position === position ? { ...row, body: row.body.replace('"epoch":1', '"epoch":2') } : row,
  );
}

/** What somebody who owned the database could make of it. */
function rewritten(position: number): ClaimedRow[] {
  let { hash } = GENESIS;
  return edited(position).map((row) => {
    hash = chainHash(hash, row.body);
    return { ...row, hash, id: eventId(hash) };
  });
}

describe('the audited history', () => {
  test('untouched: proved to its end, against its checkpoint', async () => {
    const { proof, position } = await audited(rows, [head]);
    expect({ proof, position }).toEqual({ proof: { ...head, fault: undefined }, position: head.position });
  });

  test.for(positions)('event %i edited: named, and only what came before it is told', async (position) => {
    const { proof, position: told } = await audited(edited(position));
    expect(proof?.fault).toEqual({ position, reason: 'hash_mismatch' });
    expect(told).toBe(position - 1);
  });

  test.for(positions)('event %i edited and the whole chain computed anew: the checkpoint tells', async (position) => {
    expect((await audited(rewritten(position))).proof?.fault).toBe(undefined);
    expect((await audited(rewritten(position), [head])).proof?.fault).toEqual({
      position: head.position,
      reason: 'checkpoint_mismatch',
    });
  });
});
