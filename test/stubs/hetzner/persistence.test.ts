import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createHetznerStub } from '../../../stubs/hetzner/stub.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { ACTION_MS, namesOf, SERVER, startStub } from './support.ts';

test('abandoned without being closed: the next one on the same file has its servers and goes on with its actions', async () => {
  await using folder = await temporaryDirectory();
  const stateFile = join(folder.path, 'state.json');
  await using killed = await startStub({ stateFile });
  await killed.create('servers', { ...SERVER, labels: { a: 'b' }, user_data: '#!/bin/sh\n' });

  await using next = await startStub({ stateFile });
  expect((await next.call('GET', '/servers/2')).body).toMatchObject({
    server: { name: 'app-1', status: 'initializing', labels: { a: 'b' } },
  });
  next.advance(2 * ACTION_MS);
  expect((await next.call('GET', '/servers/2')).body).toMatchObject({ server: { status: 'running' } });
  expect(await next.create('servers', { ...SERVER, name: 'app-2' })).toBe(5);
});

test('lost response: what was done is on disk', async () => {
  await using folder = await temporaryDirectory();
  const stateFile = join(folder.path, 'state.json');
  const faults = [{ match: { method: 'POST', path: '/v1/servers' }, fault: { kind: 'lose_response' } }] as const;
  await using api = await startStub({ stateFile, faults: [...faults] });
  await expect(api.call('POST', '/servers', SERVER)).rejects.toThrow('fetch failed');
  expect(JSON.parse(await readFile(stateFile, 'utf8'))).toMatchObject({ servers: [{ name: 'app-1' }] });
});

test('state file: its owner alone may read it, and no temporary file stays', async () => {
  await using folder = await temporaryDirectory();
  const stateFile = join(folder.path, 'state.json');
  await using api = await startStub({ stateFile });
  await api.create('servers', SERVER);
  expect((await stat(stateFile)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder.path)).toEqual(['state.json']);
});

test('40 creates at once: all are on disk when the last is answered', async () => {
  await using folder = await temporaryDirectory();
  const stateFile = join(folder.path, 'state.json');
  await using api = await startStub({ stateFile });
  const names = Array.from({ length: 40 }, (_, i) => `g${i}`);
  await Promise.all(names.map((name) => api.create('placement_groups', { name, type: 'spread' })));
  await using next = await startStub({ stateFile });
  const listed = namesOf(await next.call('GET', '/placement_groups?per_page=50'), 'placement_groups');
  expect(listed.toSorted()).toEqual(names.toSorted());
});

test('file that is no state: refused by name', async () => {
  await using folder = await temporaryDirectory();
  const stateFile = join(folder.path, 'state.json');
  await writeFile(stateFile, '{"servers": 7}');
  expect(() => createHetznerStub({ stateFile })).toThrow(`${stateFile} is not a state file of this stub`);
});
