import { mkdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readUpRecord, type UpRecord, UpRecordFile } from '../../src/up/up-record.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const fresh: UpRecord = {
  version: 1,
  phase: 'starting',
  started_at: 1_790_000_000_000,
  up: { pid: 4711, start_ticks: '1234567', boot_id: '903d5369-6ccd-4ccf-8364-92cf2807cb55' },
  processes: [],
  ports: {},
  urls: {},
  paths: {},
};

test('up never ran here: undefined', async () => {
  await using folder = await temporaryDirectory();
  expect(await readUpRecord(folder.path)).toBe(undefined);
});

test('changed: read back as written, from a file closed to others', async () => {
  await using folder = await temporaryDirectory();
  const file = new UpRecordFile(folder.path, fresh);
  await file.update({ phase: 'ready', ports: { gateway: 8443 }, urls: { gateway: 'https://127.0.0.1:8443/' } });
  expect(await readUpRecord(folder.path)).toEqual({
    ...fresh,
    phase: 'ready',
    ports: { gateway: 8443 },
    urls: { gateway: 'https://127.0.0.1:8443/' },
  });
  expect((await stat(join(folder.path, 'up.json'))).mode & 0o777).toBe(0o600);
});

test('fifty changes at once: the file is whole and holds the last', async () => {
  await using folder = await temporaryDirectory();
  const file = new UpRecordFile(folder.path, fresh);
  await Promise.all(Array.from({ length: 50 }, (_, port) => file.update({ ports: { gateway: port + 1 } })));
  expect((await readUpRecord(folder.path))?.ports).toEqual({ gateway: 50 });
});

test('one change cannot be written: it rejects, the next one is written with both', async () => {
  await using folder = await temporaryDirectory();
  const file = new UpRecordFile(folder.path, fresh);
  await mkdir(join(folder.path, 'up.json'));
  await expect(file.update({ phase: 'ready' })).rejects.toThrow();
  await rmdir(join(folder.path, 'up.json'));
  await file.update({ ports: { gateway: 8443 } });
  expect(await readUpRecord(folder.path)).toEqual({ ...fresh, phase: 'ready', ports: { gateway: 8443 } });
});

test.each(['postgres://pushleft:secret@localhost/db', 'https://token@127.0.0.1/'])(
  'URL with a login: refused, so that none gets into the file',
  async (url) => {
    await using folder = await temporaryDirectory();
    const file = new UpRecordFile(folder.path, fresh);
    expect(() => file.update({ urls: { database: url } })).toThrow('a URL here must not hold a login');
    expect(await readUpRecord(folder.path)).toBe(undefined);
  },
);

test.each(['{', '{"version":2}', '[]'])('damaged or newer file %s: the error names it', async (content) => {
  await using folder = await temporaryDirectory();
  await writeFile(join(folder.path, 'up.json'), content);
  await expect(readUpRecord(folder.path)).rejects.toThrow(`${folder.path}/up.json cannot be read`);
  expect(await readFile(join(folder.path, 'up.json'), 'utf8')).toBe(content);
});
