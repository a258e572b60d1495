import { chmod, stat, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { settle } from '../../src/rotation/settle.ts';
import { fresh, pathsOf, portsOf, type World } from './support/world.ts';

async function settled(world: World): Promise<{ changed: readonly string[]; trace: string[] }> {
  const trace: string[] = [];
  const ports = portsOf(world, { trace });
  const ca = await ports.readCa();
  expect(ca && (await settle(ports, ca))).toMatchObject({ kind: 'done' });
  return { changed: ports.files.changed, trace };
}

test('everything is so already: nothing is written, and the folder is made durable once, for a run that died before that', async () =>
  expect(await settled(await fresh())).toEqual({ changed: [], trace: ['fsync folder of ca.key'] }));

test("the CA's key is open to its group: it is closed", async () => {
  const world = await fresh();
  const { caKey } = pathsOf(world);
  await chmod(caKey, 0o640);
  expect((await settled(world)).changed).toEqual([caKey]);
  expect((await stat(caKey)).mode & 0o777).toBe(0o600);
});

test('a certificate that only its owner reads: left alone', async () => {
  const world = await fresh();
  const { caCert } = pathsOf(world);
  await chmod(caCert, 0o600);
  expect((await settled(world)).changed).toEqual([]);
});

test('something was staged and archived, and no rotation is under way: both are removed, each name durably', async () => {
  const world = await fresh();
  const { caKey, caCert } = pathsOf(world);
  await writeFile(`${caKey}.next`, 'a key');
  await writeFile(`${caCert}.previous`, 'a certificate');
  expect(await settled(world)).toEqual({
    changed: [`${caKey}.next`, `${caCert}.previous`],
    trace: [
      'fsync folder of ca.key',
      'remove ca.key.next',
      'fsync folder of ca.key.next',
      'remove ca.pem.previous',
      'fsync folder of ca.pem.previous',
    ],
  });
});
