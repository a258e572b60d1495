import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { identifyProcess, type ProcessIdentity } from '../../src/up/process-identity.ts';
import { prepareStateDirectory } from '../../src/up/state-directory.ts';
import { lockStateDirectory } from '../../src/up/state-lock.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('free: held until it is released', async () => {
  await using folder = await temporaryDirectory();
  const stateDir = await prepareStateDirectory(folder.path);
  await using rival = rivalProcess();
  const held = await lockStateDirectory(stateDir, rival.identity);
  expect(await lockStateDirectory(stateDir)).toEqual({ ok: false, holder: rival.identity });
  if (held.ok) await held.release();
  expect(await lockStateDirectory(stateDir)).toMatchObject({ ok: true });
});

test('holder killed with -9: taken over', async () => {
  await using folder = await temporaryDirectory();
  const stateDir = await prepareStateDirectory(folder.path);
  await using rival = rivalProcess();
  await lockStateDirectory(stateDir, rival.identity);
  await rival.kill();
  expect(await lockStateDirectory(stateDir)).toMatchObject({ ok: true });
  expect(await readdir(join(stateDir, 'locks'))).toEqual([`${process.pid}.json`]);
});

test('pid of a dead holder given to another program: taken over', async () => {
  await using folder = await temporaryDirectory();
  const stateDir = await prepareStateDirectory(folder.path);
  await using bystander = rivalProcess();
  const former = { ...bystander.identity, start_ticks: '1' };
  await writeFile(join(stateDir, 'locks', `${former.pid}.json`), JSON.stringify(former));
  expect(await lockStateDirectory(stateDir)).toMatchObject({ ok: true });
});

test('six at the same moment, five times: never two hold it', async () => {
  const rivals = Array.from({ length: 6 }, rivalProcess);
  for (let round = 0; round < 5; round += 1) {
    await using folder = await temporaryDirectory();
    const stateDir = await prepareStateDirectory(folder.path);
    const outcomes = await Promise.all(rivals.map(({ identity }) => lockStateDirectory(stateDir, identity)));
    expect(outcomes.filter(({ ok }) => ok).length).toBeLessThanOrEqual(1);
  }
  await Promise.all(rivals.map((rival) => rival.kill()));
});

/** Somebody else who may hold the lock: a real process, as the lock asks whether its holder runs. */
function rivalProcess(): { identity: ProcessIdentity; kill(): Promise<void> } & AsyncDisposable {
  const child = spawn('sleep', ['300']);
  const identity = identifyProcess(child.pid ?? 0);
  if (identity === undefined) throw new Error('sleep does not run');
  const gone = once(child, 'exit');
  const kill = async () => {
    child.kill('SIGKILL');
    await gone;
  };
  return { identity, kill, [Symbol.asyncDispose]: kill };
}
