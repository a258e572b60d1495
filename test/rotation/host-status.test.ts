import { chmod, copyFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { readHostStatus } from '../../src/rotation/host-status.ts';
import { begun, fresh, halfBegun, pathsOf, portsOf, type World } from './support/world.ts';

/** What the files of a world are beside the log of another one. */
async function seen(world: World, log: World = world) {
  const { inStep, problem, pki } = await readHostStatus(pathsOf(world), await portsOf(log).readCa(), Date.now());
  return { inStep, problem: problem?.code, trusted: pki?.trustedCaSha256s.length };
}

test.each([
  ['no rotation', fresh, 1],
  ['begun, the new CA not issuing yet', halfBegun, 2],
  ['begun', begun, 2],
])('%s: the files are where the log says', async (_, prepare, trusted) =>
  expect(await seen(await prepare())).toEqual({ inStep: true, problem: undefined, trusted }),
);

test('a host that has not followed a rotation: good files, and not where the log says', async () => {
  const host = await begun();
  expect(await seen(await fresh(), host)).toEqual({ inStep: false, problem: undefined, trusted: 1 });
});

test('the trust bundle of before: cannot be used beside the new CA', async () => {
  const host = await begun();
  await copyFile(`${pathsOf(host).caCert}.previous`, pathsOf(host).trustBundle);
  expect(await seen(host)).toEqual({ inStep: false, problem: 'pki_ca_not_in_bundle', trusted: undefined });
});

test('a key that its group reads: says so', async () => {
  const host = await fresh();
  await chmod(pathsOf(host).caKey, 0o640);
  expect(await seen(host)).toEqual({ inStep: false, problem: 'pki_key_permissions', trusted: undefined });
});

test('the log knows no CA: nothing to be in step with', async () => {
  const host = await fresh();
  expect(await readHostStatus(pathsOf(host), undefined, Date.now())).toMatchObject({
    inStep: false,
    problem: undefined,
  });
});
