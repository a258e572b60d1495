import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ProcessRuntime } from '../../../../agent/runtime/process/process-runtime.ts';
import { systemTime } from '../../../../agent/time.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { isAlive, NODE_ID, workload } from '../support/workloads.ts';

const run = promisify(execFile);
const WORKER = fileURLToPath(new URL('cut-off-worker.ts', import.meta.url));
const NEVER = new AbortController().signal;
/** More than either method has steps. */
const STEPS_MAX = 20;

/** Each process that it starts adds its pid to a file of the test's. */
const writingPids = (file: string) => ['/bin/sh', '-c', `echo $$ >>${file}; exec sleep 600`];

/** A host whose agent is killed -9 before the n-th step of a method; answers whether there was such a step. */
async function cutOff(stateDir: string, method: 'ensure' | 'remove', step: number): Promise<boolean> {
  const words = [WORKER, stateDir, method, String(step), ...writingPids(`${stateDir}/pids`)];
  return run(process.execPath, words).then(
    () => false,
    (error: { signal?: string; stderr?: string }) => {
      if (error.signal !== 'SIGKILL') throw new Error(`the worker failed: ${error.stderr}`);
      return true;
    },
  );
}

/** All that was ever started, by pid. */
async function startedPids(stateDir: string): Promise<number[]> {
  const text = await readFile(`${stateDir}/pids`, 'utf8').catch(() => '');
  return text.split('\n').filter(Boolean).map(Number);
}

/** Every process of the host's instances, wrappers too, by what they were started with. */
async function processesOf(stateDir: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const environs = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')));
  return pids.filter((_, index) => environs[index]?.includes(`HOME=${stateDir}/instances/`));
}

/** Runs `check` for each step before which the method can be cut off, some at a time; answers how many there were. */
async function forEachCut(method: 'ensure' | 'remove', check: (stateDir: string) => Promise<void>): Promise<number> {
  let next = 1;
  let cuts = 0;
  const oneAfterTheOther = async () => {
    for (let step = next++; step <= STEPS_MAX; step = next++) {
      await using folder = await temporaryDirectory();
      const runtime = newRuntime(folder.path);
      const spec = workload(writingPids(`${folder.path}/pids`), { listens: false });
      if (method === 'remove') await runtime.ensure(spec, NEVER);
      const wasCut = await cutOff(folder.path, method, step);
      if (wasCut) {
        cuts += 1;
        await check(folder.path);
      }
      await runtime.remove(spec, 5_000, NEVER);
      if (!wasCut) return;
    }
  };
  await Promise.all([oneAfterTheOther(), oneAfterTheOther(), oneAfterTheOther()]);
  return cuts;
}

function newRuntime(stateDir: string): ProcessRuntime {
  return new ProcessRuntime({ stateDir, nodeId: NODE_ID, address: async () => '127.0.0.1', time: systemTime });
}

test('ensure cut off by SIGKILL before any of its steps: the next agent starts it, it has run once, and removing leaves nothing', async () => {
  const cuts = await forEachCut('ensure', async (stateDir) => {
    const runtime = newRuntime(stateDir);
    const spec = workload(writingPids(`${stateDir}/pids`), { listens: false });
    // At once, while a wrapper that the last agent left waiting may still be there.
    await runtime.ensure(spec, NEVER);
    const [pid] = await waitFor(() => startedPids(stateDir).then((pids) => pids.length > 0 && pids), {
      what: 'it runs',
    });
    expect(await newRuntime(stateDir).ensure(spec, NEVER)).toMatchObject({ found: true });
    expect([await startedPids(stateDir), await isAlive(pid ?? 0)]).toEqual([[pid], true]);
    expect(await runtime.remove(spec, 5_000, NEVER)).toBe(true);
    expect([await processesOf(stateDir), await readdir(`${stateDir}/instances`)]).toEqual([[], []]);
  });
  expect(cuts).toBeGreaterThanOrEqual(10);
});

test('remove cut off by SIGKILL before any of its steps: nothing of it runs, the next agent removes the rest', async () => {
  const cuts = await forEachCut('remove', async (stateDir) => {
    const spec = workload(writingPids(`${stateDir}/pids`), { listens: false });
    await newRuntime(stateDir).remove(spec, 5_000, NEVER);
    expect([await processesOf(stateDir), await readdir(`${stateDir}/instances`)]).toEqual([[], []]);
    expect(await newRuntime(stateDir).remove(spec, 5_000, NEVER)).toBe(false);
  });
  expect(cuts).toBeGreaterThanOrEqual(5);
});
