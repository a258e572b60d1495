import { readdir, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { LeaseMemory } from '../../agent/lease-memory.ts';
import { diskFs } from '../../agent/state-fs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { CutHere, cutFs } from './support/cut-fs.ts';

const REQUEST_ID = '0b7e1c5e-0d0c-4a35-9c8e-3f1d2a4b5c6d';

describe('LeaseMemory', () => {
  test('what was kept is there after a restart', async () => {
    await using folder = await temporaryDirectory();
    const memory = await LeaseMemory.open(diskFs, folder.path);
    await memory.keepLogHead('head-1');
    await memory.keepUnanswered(REQUEST_ID);
    const reopened = await LeaseMemory.open(diskFs, folder.path);
    expect([reopened.logHead, await reopened.takeUnanswered()]).toEqual(['head-1', REQUEST_ID]);
    expect(await readdir(folder.path)).toEqual(['lease-memory.json']);
  });

  test('the same head again: nothing is written', async () => {
    await using folder = await temporaryDirectory();
    const trace: string[] = [];
    const memory = await LeaseMemory.open(cutFs(folder.path, trace), folder.path);
    await memory.keepLogHead('head-1');
    const written = trace.length;
    await memory.keepLogHead('head-1');
    expect(trace.length).toBe(written);
  });

  test.each(['', '{', '[]', '{"log_head":"a\\nb"}', '{"log_head":"a","more":1}'])(
    '%j on disk: counts as none',
    async (text) => {
      await using folder = await temporaryDirectory();
      await writeFile(`${folder.path}/lease-memory.json`, text);
      expect((await LeaseMemory.open(diskFs, folder.path)).logHead).toBe(undefined);
    },
  );

  test('cut at any step of a replacement: the old head or the new one, and the next one can be kept', async () => {
    for (const when of ['before', 'torn', 'after'] as const) {
      for (const step of [1, 2, 3, 4]) {
        await using folder = await temporaryDirectory();
        await (await LeaseMemory.open(diskFs, folder.path)).keepLogHead('head-1');
        const cut = await LeaseMemory.open(cutFs(folder.path, [], { step, when }), folder.path);
        await expect(cut.keepLogHead('head-2')).rejects.toThrow(CutHere);
        const reopened = await LeaseMemory.open(diskFs, folder.path);
        expect(reopened.logHead).toBe(step > 3 || (step === 3 && when === 'after') ? 'head-2' : 'head-1');
        await reopened.keepLogHead('head-3');
        expect((await LeaseMemory.open(diskFs, folder.path)).logHead).toBe('head-3');
      }
    }
  });
});
