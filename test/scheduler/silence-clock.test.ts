import { describe, expect, test } from 'vitest';
import { type ClockMemory, type GatewaySight, stepClock } from '../../src/scheduler/silence-clock.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const LIMITS = { mostMs: 8 * SECOND };

/** A leader that passes every 2 s of its monotonic clock and sees gateways. */
class Watch {
  #memory: ClockMemory | undefined;
  #nowMs = 1_000_000;
  clockMs = 0;
  waitsFor: readonly string[] = [];

  pass(...sights: readonly GatewaySight[]): this {
    this.#nowMs += 2 * SECOND;
    const step = stepClock(this.#memory, sights, this.#nowMs, LIMITS);
    this.#memory = step.memory;
    this.clockMs += step.advanceMs;
    this.waitsFor = step.waitsFor;
    return this;
  }

  /** Passes for `ms`, each gateway as `sightsOf` shows it at the n-th pass. */
  during(ms: number, sightsOf: (n: number) => readonly GatewaySight[]): this {
    for (let n = 1; n <= ms / (2 * SECOND); n += 1) this.pass(...sightsOf(n));
    return this;
  }

  /** Nothing is passed for so long: the leader is stopped, or the database is away. */
  idle(ms: number): this {
    this.#nowMs += ms;
    return this;
  }
}

const at = (program: string, reached: number | null): GatewaySight => ({ program, reached });
/** A gateway that counts at each pass. */
const moving = (program: string) => (n: number) => [at(program, 1_000 + n)];

describe('the clock advances', () => {
  test('a gateway counts at each pass: by the time between them', () =>
    expect(new Watch().pass(at('a', 1)).during(MINUTE, moving('a')).clockMs).toBe(MINUTE));

  test('a gateway counts at every third pass: by all the time', () =>
    expect(new Watch().pass(at('a', 1)).during(MINUTE, (n) => [at('a', 1 + Math.floor(n / 3))]).clockMs).toBe(MINUTE));

  test('two gateways that count in turn: by all the time', () =>
    expect(
      new Watch()
        .pass(at('a', 1), at('b', 1))
        .during(MINUTE, (n) => [at('a', 1 + Math.floor(n / 2)), at('b', 1 + Math.ceil(n / 2))]).clockMs,
    ).toBe(MINUTE));
});

describe('the clock stands', () => {
  const standing = (watch: Watch, sights: readonly GatewaySight[]) => {
    const before = watch.clockMs;
    return watch.during(6 * MINUTE, () => sights).clockMs - before;
  };

  test('the first pass of a leader, however long it has waited', () => {
    const watch = new Watch().idle(10 * MINUTE).pass(at('a', 7));
    expect(watch.clockMs).toBe(0);
  });

  test('no gateway', () => expect(standing(new Watch().pass(at('a', 1)), [])).toBe(0));

  test.for([
    ['its listener is dead or its flush stalls: the counter does not move', [at('a', 1)]],
    ['it is of a version that does not count', [at('a', null)]],
    ['it was started again and has not been reached since', [at('a', 0)]],
  ] as const)('%s', ([, sights]) => {
    const watch = new Watch().pass(at('a', 1));
    expect([standing(watch, sights), watch.waitsFor]).toEqual([0, ['a']]);
  });

  test('a gateway that is new: until it has been reached', () => {
    const watch = new Watch().pass(at('a', 1)).pass(at('a', 2), at('b', 4));
    expect([watch.clockMs, watch.waitsFor]).toEqual([0, ['b']]);
    expect(watch.pass(at('a', 3), at('b', 5)).clockMs).toBe(4 * SECOND);
  });
});

describe('after a time that nobody could be heard', () => {
  test('the only gateway was away for 6 min: no more than one step of it counts', () => {
    const watch = new Watch().pass(at('a', 1)).during(6 * MINUTE, () => []);
    expect(watch.pass(at('b', 1)).pass(at('b', 2)).clockMs).toBe(LIMITS.mostMs);
  });

  test('the leader was stopped for 6 min: no more than one step counts', () =>
    expect(
      new Watch()
        .pass(at('a', 1))
        .idle(6 * MINUTE)
        .pass(at('a', 400)).clockMs,
    ).toBe(LIMITS.mostMs));
});

describe('one of two gateways stands still', () => {
  const half = (n: number) => [at('a', 1_000 + n), at('b', 1)];

  test('for 30 s: the clock waits for it', () => {
    const watch = new Watch().pass(...half(0)).during(30 * SECOND, half);
    expect([watch.clockMs, watch.waitsFor]).toEqual([0, ['b']]);
  });

  test('for longer: it counts as gone, and the clock goes on', () => {
    const watch = new Watch().pass(...half(0)).during(32 * SECOND, half);
    expect([watch.clockMs, watch.waitsFor]).toEqual([LIMITS.mostMs, []]);
    expect(watch.during(MINUTE, (n) => [at('a', 5_000 + n), at('b', 1)]).clockMs).toBe(LIMITS.mostMs + MINUTE);
  });

  test('gone, and back: the clock waits for it again when it stops', () => {
    const watch = new Watch().pass(...half(0)).during(32 * SECOND, half);
    const clockMs = watch.pass(at('a', 2_000), at('b', 2)).clockMs;
    expect(watch.pass(at('a', 2_001), at('b', 2)).waitsFor).toEqual(['b']);
    expect(watch.clockMs).toBe(clockMs);
  });

  test('then the other one as well: the clock stands', () => {
    const watch = new Watch().pass(...half(0)).during(MINUTE, half);
    const { clockMs } = watch;
    expect(watch.during(6 * MINUTE, () => [at('a', 1_030), at('b', 1)]).clockMs).toBe(clockMs);
  });

  test('both stand from one moment on: neither makes the other one gone', () => {
    const watch = new Watch().pass(at('a', 1), at('b', 1)).pass(at('a', 2), at('b', 1));
    expect(watch.during(6 * MINUTE, () => [at('a', 2), at('b', 1)]).clockMs).toBe(0);
  });
});
