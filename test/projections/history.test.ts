import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TABLE_NAMES } from '../../projections/registry.ts';
import { EVENT_TYPES, type EventType } from '../../src/domain/event/catalogue.ts';
import type { RecordedEvent } from '../../src/domain/event/recorded.ts';
import { unseal } from '../../src/log/codec.ts';
import { foldLog } from '../../src/projector/fold-log.ts';
import { FoldState } from '../../src/projector/fold-state.ts';
import { generateHistory, history } from '../support/history.ts';

/** Types that random histories never have. Each needs tests of its own, by hand. */
const UNTESTED: readonly EventType[] = [];

const anyHistory = fc.record({ seed: fc.integer(), length: fc.integer({ min: 1, max: 400 }) });

function tablesOf(state: FoldState) {
  return Object.fromEntries(TABLE_NAMES.map((name) => [name, Object.fromEntries(state.rows(name))]));
}

function folded(events: readonly RecordedEvent[]): FoldState {
  const state = new FoldState(TABLE_NAMES);
  for (const event of events) state.apply(event);
  return state;
}

/** A log in memory that is read page by page. */
function logOf(events: readonly RecordedEvent[]) {
  return {
    read: ({ after, limit }: { after: number; limit: number }) =>
      Promise.resolve(
        events
          .slice(after, after + limit)
          .map((event) => ({ position: event.position, revision: 0, hash: '', body: '', event })),
      ),
  };
}

describe('any history', () => {
  test('folded in two parts: the same as in one', () =>
    fc.assert(
      fc.asyncProperty(anyHistory, fc.nat({ max: 400 }), async ({ seed, length }, cut) => {
        const events = await generateHistory(seed, length);
        const inParts = new FoldState(TABLE_NAMES);
        await foldLog(logOf(events), inParts, { position: Math.min(cut, length) });
        expect(inParts.position).toBe(Math.min(cut, length));
        await foldLog(logOf(events), inParts);
        expect(tablesOf(inParts)).toEqual(tablesOf(folded(events)));
      }),
      { numRuns: 25 },
    ));

  test('folded until a time: what was recorded by then, and nothing later', () =>
    fc.assert(
      fc.asyncProperty(anyHistory, fc.nat({ max: 399 }), async ({ seed, length }, index) => {
        const events = await generateHistory(seed, length);
        const at = events[Math.min(index, length - 1)]?.at ?? 0;
        const state = new FoldState(TABLE_NAMES);
        await foldLog(logOf(events), state, { at });
        expect(tablesOf(state)).toEqual(tablesOf(folded(events.filter((event) => event.at <= at))));
      }),
      { numRuns: 25 },
    ));

  test('read back from its bytes: the same events', () =>
    fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        let events = 0;
        for await (const { sealed } of history(seed)) {
          for (const { body, event } of sealed) expect(unseal(event.position, body)).toEqual(event);
          events += sealed.length;
          if (events >= 200) break;
        }
      }),
      { numRuns: 10 },
    ));

  test('the same seed: the same history', async () =>
    expect(await generateHistory(7, 300)).toEqual(await generateHistory(7, 300)));

  test('positions are gapless and time never goes back', async () => {
    const events = await generateHistory(11, 1_000);
    expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => index + 1));
    expect(events.map(({ at }) => at)).toEqual(events.map(({ at }) => at).toSorted((a, b) => a - b));
  });
});

test('every event type: in long histories, or listed as untested', async () => {
  const missing = new Set<EventType>(EVENT_TYPES);
  // What is rare may not come about in one of them, however long it is.
  for (let seed = 1; seed <= 6 && missing.size > UNTESTED.length; seed += 1) {
    let commands = 0;
    for await (const { sealed } of history(seed)) {
      for (const { event } of sealed) missing.delete(event.type);
      commands += 1;
      if (missing.size === UNTESTED.length || commands > 50_000) break;
    }
  }
  expect([...missing]).toEqual(UNTESTED);
});
