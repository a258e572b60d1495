import { expect, test } from 'vitest';
import { Turns } from '../../src/gateway/turns.ts';

test('more than fit: the others wait in line, also when one fails', async () => {
  const turns = new Turns(2);
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  const started: [number, boolean][] = [];
  const runs = gates.map((gate, i) =>
    turns.take(async (waited) => {
      started.push([i, waited]);
      await gate.promise;
    }),
  );
  expect(started).toEqual([
    [0, false],
    [1, false],
  ]);
  gates[0]?.reject(new Error('failed'));
  await expect(runs[0]).rejects.toThrow('failed');
  expect(started).toEqual([
    [0, false],
    [1, false],
    [2, true],
  ]);
  for (const gate of gates.slice(1)) gate.resolve();
  await Promise.all(runs.slice(1));
  await turns.take(async (waited) => started.push([4, waited]));
  expect(started.slice(3)).toEqual([
    [3, true],
    [4, false],
  ]);
});
