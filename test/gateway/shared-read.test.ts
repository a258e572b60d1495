import { describe, expect, test } from 'vitest';
import { SharedRead } from '../../src/gateway/shared-read.ts';
import { waitFor } from '../support/wait-for.ts';

/** A read that is answered by the test: `reads` lists what each read was asked, `finish` answers the oldest one. */
function heldRead() {
  const reads: (readonly string[])[] = [];
  const held: PromiseWithResolvers<readonly string[]>[] = [];
  const shared = new SharedRead<string, string>((inputs) => {
    reads.push(inputs);
    const read = Promise.withResolvers<readonly string[]>();
    held.push(read);
    return read.promise;
  });
  return { shared, reads, held };
}

describe('questions of one moment', () => {
  test('asked in the same turn: one read, each its own answer', async () => {
    const { shared, reads, held } = heldRead();
    const answers = [shared.ask('a'), shared.ask('b')];
    await waitFor(() => held.length === 1, { what: 'the read has begun' });
    held[0]?.resolve(['A', 'B']);
    expect([await Promise.all(answers), reads]).toEqual([['A', 'B'], [['a', 'b']]]);
  });

  test('asked while a read is under way: answered by the next one, never by that one', async () => {
    const { shared, reads, held } = heldRead();
    const first = shared.ask('a');
    await waitFor(() => held.length === 1, { what: 'the first read has begun' });
    const late = [shared.ask('a'), shared.ask('b')];
    held[0]?.resolve(['old']);
    expect(await first).toBe('old');
    await waitFor(() => held.length === 2, { what: 'the second read has begun' });
    held[1]?.resolve(['new', 'B']);
    expect([await Promise.all(late), reads]).toEqual([
      ['new', 'B'],
      [['a'], ['a', 'b']],
    ]);
  });

  test('a read that fails: its own questions fail, the next ones are read', async () => {
    const { shared, held } = heldRead();
    const failing = shared.ask('a');
    await waitFor(() => held.length === 1, { what: 'the first read has begun' });
    const next = shared.ask('b');
    held[0]?.reject(new Error('away'));
    await expect(failing).rejects.toThrow('away');
    await waitFor(() => held.length === 2, { what: 'the second read has begun' });
    held[1]?.resolve(['B']);
    expect(await next).toBe('B');
  });
});
