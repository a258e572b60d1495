import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chooseServiceUser } from '../../../src/up/postgres/service-user.ts';
import { startPostgres } from '../../../src/up/postgres/start-postgres.ts';
import { identifyProcess, isRunning } from '../../../src/up/process-identity.ts';
import { waitFor } from '../../support/wait-for.ts';
import { queryValue, type TemporaryState, temporaryState } from './state.ts';

let state: TemporaryState;
beforeAll(async () => {
  state = await temporaryState();
});
afterAll(() => state[Symbol.asyncDispose]());

test('up killed with -9: its server goes on, the next start ends it and serves the same data', async () => {
  const orphan = await leaveOrphan(state.stateDir);
  expect(isRunning(orphan)).toBe(true);
  const said: string[] = [];
  const server = await startPostgres({ stateDir: state.stateDir, durable: false, log: (line) => said.push(line) });
  expect(said).toEqual([`PostgreSQL: ending process ${orphan.pid}, left behind by an earlier start`]);
  expect(isRunning(orphan)).toBe(false);
  expect(await queryValue(server.superuserUrl, 'SELECT 1')).toBe(1);
  await server.stop();
});

test('up ends by an error: its server ends with it', async () => {
  const script = join(import.meta.dirname, 'fixtures/start-and-wait.ts');
  const child = spawn(process.execPath, [script, state.stateDir, 'throw'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [said] = await once(child.stdout.setEncoding('utf8'), 'data');
  const server = identifyProcess(Number(/^pid (\d+)\n$/.exec(String(said))?.[1]));
  await waitFor(() => server === undefined || !isRunning(server), { what: 'the server is gone', deadlineMs: 30_000 });
  await expect(readFile(join(state.stateDir, 'logs/postgres.log'), 'utf8')).resolves.toMatch(
    /database system is shut down\n$/,
  );
});

test('up killed before it recorded its server: found by the data folder it serves', async () => {
  const orphan = await leaveOrphan(state.stateDir);
  const recordFile = join(state.stateDir, 'postgres.json');
  const record: object = JSON.parse(await readFile(recordFile, 'utf8'));
  await writeFile(recordFile, JSON.stringify({ ...record, process: null }));
  const server = await startPostgres({ stateDir: state.stateDir, durable: false });
  expect(isRunning(orphan)).toBe(false);
  await server.stop();
});

test('pid of the dead server given to another program: started, and that program is left alone', async () => {
  const first = await startPostgres({ stateDir: state.stateDir, durable: false });
  process.kill(first.pid, 'SIGKILL');
  await first.exited;
  // PostgreSQL itself would refuse: its lock file names a living process of its own user.
  const user = await chooseServiceUser();
  const bystander = spawn('sleep', ['60'], user === undefined ? {} : { uid: user.uid, gid: user.gid });
  const identity = await waitFor(() => identifyProcess(bystander.pid ?? 0), { what: 'the bystander runs' });
  const recordFile = join(state.stateDir, 'postgres.json');
  await writeFile(
    recordFile,
    (await readFile(recordFile, 'utf8')).replace(`"pid": ${first.pid}`, `"pid": ${identity.pid}`),
  );
  const lockFile = join(first.dataDir, 'postmaster.pid');
  await writeFile(lockFile, (await readFile(lockFile, 'utf8')).replace(String(first.pid), String(identity.pid)));
  const second = await startPostgres({ stateDir: state.stateDir, durable: false });
  expect(isRunning(identity)).toBe(true);
  bystander.kill('SIGKILL');
  await second.stop();
});

/** Starts PostgreSQL from a process of its own and kills that with -9. */
async function leaveOrphan(stateDir: string) {
  const script = join(import.meta.dirname, 'fixtures/start-and-wait.ts');
  const child = spawn(process.execPath, [script, stateDir], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const pid = await waitFor(() => /^pid (\d+)\n/.exec(output)?.[1], { what: 'the server runs', deadlineMs: 30_000 });
  child.kill('SIGKILL');
  const orphan = identifyProcess(Number(pid));
  if (orphan === undefined) throw new Error('the server is gone with its parent');
  return orphan;
}
