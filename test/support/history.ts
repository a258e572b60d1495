import type { DecisionTime } from '../../src/domain/decision.ts';
import type { RecordedEvent } from '../../src/domain/event/recorded.ts';
import { GENESIS_HASH } from '../../src/log/chain.ts';
import { seal } from '../../src/log/codec.ts';
import type { LogHead, SealedEvent } from '../../src/log/event-log.ts';
import { START } from './events.ts';
import { METADATA } from './given.ts';
import { MemoryRows } from './memory-rows.ts';
import { Random } from './random.ts';
import { RandomFleet } from './random-fleet.ts';
import type { Order } from './random-orders.ts';

/** One command of a history and the events that it appended: none when it was nothing new, or refused and not on record. */
export interface Step {
  readonly order: Order;
  readonly sealed: readonly SealedEvent[];
}

/**
 * A history without an end that could have happened, the same for the same seed: random commands, each decided by the real decision on
 * the real folds of what came before. Step by step, so that a million events need not be held.
 */
export async function* history(seed: number): AsyncGenerator<Step, never> {
  const random = new Random(seed);
  const rows = new MemoryRows();
  const fleet = new RandomFleet(random, rows);
  let head: LogHead = { position: 0, hash: GENESIS_HASH, at: 0 };
  let now = START;
  let order: Order | undefined;
  for (;;) {
    now += passedMs(random);
    if (order === undefined || !random.percent(5)) order = fleet.next(now);
    const time = { now, at: Math.max(now, head.at) };
    const sealed = await decide(order, rows, head, time);
    for (const { event, hash } of sealed) {
      rows.apply(event);
      fleet.observe(event);
      head = { position: event.position, hash, at: event.at };
    }
    yield { order, sealed };
  }
}

/** The first `count` events of a history. */
export async function generateHistory(seed: number, count: number): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for await (const { sealed } of history(seed)) {
    events.push(...sealed.map(({ event }) => event));
    if (events.length >= count) break;
  }
  return events.slice(0, count);
}

async function decide(order: Order, rows: MemoryRows, head: LogHead, time: DecisionTime): Promise<SealedEvent[]> {
  const decision = await order.give(async (definition, command) =>
    definition.decide(command, await definition.load(rows, command), time),
  );
  const decided = 'refusal' in decision ? (decision.record ?? []) : decision.events;
  return seal(head, decided, METADATA, time.at);
}

/** Mostly a second or two; now and then the clock goes back a little, or a quarter of an hour passes. */
function passedMs(random: Random): number {
  if (random.percent(1)) return -200;
  return random.percent(0.5) ? 16 * 60_000 : random.integer(0, 2_000);
}
