import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { releaseLossesCommand } from '../../src/commands/loss.ts';
import { PassingFleet, WEB } from './support/passing-fleet.ts';

const UNHEALTHY_MS = 90_000;
const LOST_MS = 300_000;

let fleet: PassingFleet;
let ids: readonly string[];

beforeEach(async () => {
  fleet = await PassingFleet.start();
});
afterEach(() => fleet[Symbol.asyncDispose]());

/** A pool of so many nodes with an instance on each, and another pool of one node. */
async function poolOf(count: number): Promise<void> {
  ids = await fleet.addNodes({ ingress: true }, ...Array.from({ length: count - 1 }, () => ({})));
  await fleet.addNodes({ pool: 'build' });
  await fleet.deploy({ roles: [{ ...WEB, count }] });
  await fleet.settle();
}

/** So many nodes fall silent for as long as it takes to be lost, with a sweep each minute; answers what is appended meanwhile. */
async function silence(nodes: readonly string[]): Promise<string[]> {
  const before = await fleet.head();
  for (const id of nodes) fleet.silent.add(id);
  for (let passedMs = 0; passedMs <= LOST_MS; passedMs += UNHEALTHY_MS) {
    await fleet.pass(UNHEALTHY_MS);
    await fleet.sweep();
    await fleet.settle();
  }
  return fleet.typesAfter(before);
}

const running = async () => (await fleet.instances()).filter((line) => line.endsWith('.1 ready')).length;

describe('five of six nodes fall silent together', () => {
  beforeEach(() => poolOf(6));
  const becameUnhealthy = Array.from({ length: 5 }, () => 'node_became_unhealthy');

  test('held: none is lost and nothing is replaced, however long it takes', async () => {
    expect(await silence(ids.slice(1))).toEqual(['node_loss_held', ...becameUnhealthy]);
    expect(await running()).toBe(6);
    const before = await fleet.head();
    await fleet.pass(LOST_MS);
    await fleet.sweep();
    expect(await fleet.typesAfter(before)).toEqual([]);
  });

  test('they are heard again: released, and nothing was replaced', async () => {
    await silence(ids.slice(1));
    fleet.silent.clear();
    await fleet.pass(1);
    const before = await fleet.head();
    await fleet.sweep();
    await fleet.settle();
    expect(await fleet.typesAfter(before)).toEqual(['node_loss_released']);
    expect(await running()).toBe(6);
  });

  test('released by command: all five are lost, and each of their instances is replaced once', async () => {
    await silence(ids.slice(1));
    await fleet.give(releaseLossesCommand, { pool: 'application', unhealthy_after_ms: UNHEALTHY_MS });
    const before = await fleet.head();
    await fleet.sweep();
    const types = await fleet.typesAfter(before);
    expect(types.filter((type) => type === 'node_lost')).toHaveLength(5);
    expect(types.filter((type) => type === 'instance_replacement_queued')).toHaveLength(5);
    expect(types.includes('node_loss_held')).toBe(false);
  });
});

describe('a pool of two', () => {
  beforeEach(() => poolOf(2));

  test('one falls silent: lost, and what it had is replaced on the other', async () => {
    await silence(ids.slice(1));
    expect((await fleet.instances()).map((line) => line.slice(line.lastIndexOf('.') + 1))).toEqual(
      expect.arrayContaining(['1 ready', '1 lost', '2 ready']),
    );
  });

  test('both fall silent at once: held', async () => {
    expect(await silence(ids)).toEqual(['node_loss_held', 'node_became_unhealthy', 'node_became_unhealthy']);
    expect(await running()).toBe(2);
  });
});
