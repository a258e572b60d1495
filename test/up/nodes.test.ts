import { expect, test } from 'vitest';
import { wantedNodes } from '../../src/up/nodes.ts';

test('wanted nodes: every third is for builds, and more of them leave the names of the first as they are', () => {
  expect(wantedNodes(3)).toEqual([
    { name: 'app-fsn1-1', pool: 'application' },
    { name: 'app-fsn1-2', pool: 'application' },
    { name: 'build-fsn1-3', pool: 'build' },
  ]);
  expect(wantedNodes(5).slice(0, 3)).toEqual(wantedNodes(3));
  expect(wantedNodes(0)).toEqual([]);
});
