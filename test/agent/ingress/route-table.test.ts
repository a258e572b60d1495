import { readFile, stat, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RouteOrder } from '../../../agent/ingress/ingress.ts';
import { RouteTable } from '../../../agent/ingress/route-table.ts';
import { diskFs } from '../../../agent/state-fs.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(() => folder[Symbol.asyncDispose]());

const open = () => RouteTable.open(diskFs, folder.path);
const order = (generation: number, change: Partial<RouteOrder> = {}): RouteOrder => ({
  hostname: 'shop.example.com',
  deployment_id: '80000000-0000-4000-8000-000000000001',
  generation,
  epoch: 1,
  upstreams: [{ address: '10.0.0.7', port: 40_000 }],
  ...change,
});

test('nothing was told yet: nothing is served', async () => expect((await open()).served).toEqual([]));

test('told: served, also by an agent that starts anew; nobody else can read it', async () => {
  const table = await open();
  expect(await table.keep(order(2))).toBe(true);
  expect([table.served, (await open()).served]).toEqual([[order(2)], [order(2)]]);
  expect((await stat(`${folder.path}/ingress-routes.json`)).mode & 0o777).toBe(0o600);
});

test('the same again: served', async () => {
  const table = await open();
  await table.keep(order(2));
  expect([await table.keep(order(2)), table.served]).toEqual([true, [order(2)]]);
});

test('an earlier generation: superseded, the later one stays', async () => {
  const table = await open();
  await table.keep(order(2));
  await expect(table.keep(order(1))).rejects.toMatchObject({ code: 'superseded' });
  expect((await open()).served).toEqual([order(2)]);
});

test('an earlier generation of a later epoch: served', async () => {
  const table = await open();
  await table.keep(order(2));
  expect(await table.keep(order(1, { epoch: 2 }))).toBe(true);
});

test('taken away: not served, and nothing before that comes back', async () => {
  const table = await open();
  await table.keep(order(2));
  expect([await table.keep(order(2, { upstreams: [] })), table.served]).toEqual([false, []]);
  await expect((await open()).keep(order(1))).rejects.toMatchObject({ code: 'superseded' });
});

test('taken away by an order from before the present route: that one stays', async () => {
  const table = await open();
  await table.keep(order(3));
  expect([await table.keep(order(1, { upstreams: [] })), table.served]).toEqual([false, [order(3)]]);
});

test('damaged: an error, no guess', async () => {
  await (await open()).keep(order(2));
  const path = `${folder.path}/ingress-routes.json`;
  await writeFile(path, (await readFile(path, 'utf8')).replace('"generation":2', '"generation":"x"'));
  await expect(open()).rejects.toThrow();
});
