import { randomInt } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import * as v from 'valibot';
import { writePrivateFile } from './private-files.ts';
import { identifyProcess, isRunning, ProcessIdentity } from './process-identity.ts';

export type LockOutcome = { ok: true; release(): Promise<void> } | { ok: false; holder: ProcessIdentity };

/**
 * Keeps a second `up` out of a state directory. Each contender lays down a file of its own (locks/<pid>.json with its
 * start time) and only then looks for others whose process still runs: of two at the same moment at least one sees the
 * other, and nobody ever has to take a dead holder's file over, which is where lock files go wrong. Both may step back
 * then, so each tries again after a moment of its own.
 */
export async function lockStateDirectory(stateDir: string, owner = ourselves()): Promise<LockOutcome> {
  const own = join(stateDir, 'locks', `${owner.pid}.json`);
  for (let attempt = 1; ; attempt += 1) {
    await writePrivateFile(own, JSON.stringify(owner));
    const rival = await livingRival(stateDir, owner);
    if (rival === undefined) return { ok: true, release: () => rm(own, { force: true }) };
    await rm(own, { force: true });
    if (attempt === 4) return { ok: false, holder: rival };
    await delay(randomInt(20, 200));
  }
}

/** Removes the files of the dead on the way. */
async function livingRival(stateDir: string, owner: ProcessIdentity): Promise<ProcessIdentity | undefined> {
  const folder = join(stateDir, 'locks');
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json') && name !== `${owner.pid}.json`);
  for (const path of names.map((name) => join(folder, name))) {
    const content = await readFile(path, 'utf8').catch(() => undefined);
    if (content === undefined) continue;
    const holder = v.parse(ProcessIdentity, JSON.parse(content));
    if (isRunning(holder)) return holder;
    await rm(path, { force: true });
  }
  return undefined;
}

function ourselves(): ProcessIdentity {
  const identity = identifyProcess(process.pid);
  if (identity === undefined) throw new Error('/proc is not mounted: processes cannot be told apart');
  return identity;
}
