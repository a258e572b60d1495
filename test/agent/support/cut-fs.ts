import { writeFile } from 'node:fs/promises';
import { diskFs, type StateFs } from '../../../agent/state-fs.ts';

/** Where a run is cut: before or after the n-th writing step, or in the middle of it (a file half written). */
export interface Cut {
  readonly step: number;
  readonly when: 'before' | 'torn' | 'after';
}

/** The machine died here. */
export class CutHere extends Error {}

/** The real file system, which names each writing step in `trace` (digits, pids and random parts aside) and dies at `cut`. */
export function cutFs(stateDir: string, trace: string[], cut?: Cut): StateFs {
  let steps = 0;
  let dead = false;
  const named = (path: string) =>
    path
      .replace(stateDir, '')
      .replace(/\.staging-[0-9a-f]+/, '.staging')
      .replace(`.${process.pid}.`, '.');

  async function step(name: string, act: () => Promise<void>, tear?: () => Promise<void>): Promise<void> {
    if (dead) throw new CutHere('nothing happens after the cut');
    steps += 1;
    trace.push(name);
    const here = cut?.step === steps ? cut.when : undefined;
    if (here === 'torn') await tear?.();
    else if (here !== 'before') await act();
    if (here === undefined) return;
    dead = true;
    throw new CutHere(name);
  }

  return {
    readText: (path) => diskFs.readText(path),
    list: (path) => diskFs.list(path),
    readLink: (path) => diskFs.readLink(path),
    makeDir: (path) => step(`mkdir ${named(path)}`, () => diskFs.makeDir(path)),
    writeSynced: (path, text) =>
      step(
        `write ${named(path)}`,
        () => diskFs.writeSynced(path, text),
        () => writeFile(path, text.slice(0, text.length / 2), { mode: 0o600 }),
      ),
    rename: (from, to) => step(`rename ${named(to)}`, () => diskFs.rename(from, to)),
    makeLink: (target, path) => step(`link ${named(path)}`, () => diskFs.makeLink(target, path)),
    remove: (path) => step(`remove ${named(path)}`, () => diskFs.remove(path)),
    syncDir: (path) => step(`sync ${named(path)}/`, () => diskFs.syncDir(path)),
  };
}
