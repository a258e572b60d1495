import { expect, test } from 'vitest';
import { hostCapacity } from '../../src/hetzner/capacity.ts';

test('cx33: less half a vCPU, 1 GiB and 20 GB', () =>
  expect(hostCapacity({ cores: 4, memory: 8, disk: 80 })).toEqual({ cpuMillis: 3_500, memoryMb: 7_168, diskGb: 60 }));
test('memory of half a GB more: counted in MiB', () =>
  expect(hostCapacity({ cores: 2, memory: 2.5, disk: 40 })?.memoryMb).toBe(1_536));
test('nothing left of memory or disk: undefined', () => {
  expect(hostCapacity({ cores: 1, memory: 1, disk: 25 })).toBeUndefined();
  expect(hostCapacity({ cores: 1, memory: 2, disk: 20 })).toBeUndefined();
});
