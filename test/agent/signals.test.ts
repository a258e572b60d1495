import { describe, expect, test } from 'vitest';
import { settled, WorkStuck } from '../../agent/signals.ts';
import { systemTime } from '../../agent/time.ts';

const never = () => new Promise<never>(() => undefined);
const going = () => new AbortController().signal;

describe('settled', () => {
  test('work that ends: its value, though it was told to end long before', async () =>
    expect(
      await settled(
        systemTime.pause(20).then(() => 7),
        AbortSignal.abort(),
        60_000,
        systemTime,
      ),
    ).toBe(7));

  test('work that fails: its error', async () =>
    expect(settled(Promise.reject(new Error('broken')), going(), 60_000, systemTime)).rejects.toThrow('broken'));

  test('work that goes on after its end: WorkStuck', async () =>
    expect(settled(never(), AbortSignal.abort(), 20, systemTime)).rejects.toThrow(WorkStuck));

  test('work that was not told to end: is waited for, however long', async () => {
    const winner = Promise.race([settled(never(), going(), 1, systemTime), systemTime.pause(50).then(() => 'waiting')]);
    expect(await winner).toBe('waiting');
  });
});
