import { expect, test } from 'vitest';
import { waitUntil } from '../../src/up/wait-until.ts';

test('true in the end: its value', async () => {
  let asked = 0;
  const value = await waitUntil(() => (asked++ < 3 ? undefined : `asked ${asked} times`), {
    what: 'it is',
    intervalMs: 1,
  });
  expect(value).toBe('asked 4 times');
});

test('throws at first: asked again', async () => {
  let asked = 0;
  const condition = () => {
    if (asked++ < 2) throw new Error('not yet');
    return true;
  };
  expect(await waitUntil(condition, { what: 'it is', intervalMs: 1 })).toBe(true);
});

test('never true: the error says what was waited for and why it was not so', async () => {
  const condition = () => {
    throw new Error('connection refused');
  };
  await expect(
    waitUntil(condition, { what: 'the gateway listens', deadlineMs: 20, intervalMs: 5 }),
  ).rejects.toMatchObject({
    message: expect.stringMatching(/^waited \d+ ms in vain for: the gateway listens$/),
    cause: new Error('connection refused'),
  });
});
