import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeEnvironmentFile } from '../../src/up/environment-files.ts';
import { identifyProcess } from '../../src/up/process-identity.ts';
import { UpRecordFile } from '../../src/up/up-record.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { plainLines, runCli } from './support/run-cli.ts';

/** A state directory as `up` leaves it once ready, whose database nobody listens for; this test's own process is the `up`. */
async function fleetWithoutDatabase(parent: string, up: 'runs' | 'is gone'): Promise<string> {
  const stateDir = join(parent, '.pushleft');
  await mkdir(join(stateDir, 'env'), { recursive: true, mode: 0o700 });
  await writeEnvironmentFile(stateDir, 'operator', { DATABASE_URL: 'postgres://u:canary@127.0.0.1:1/fleet' });
  const self = identifyProcess(process.pid);
  if (self === undefined) throw new Error('/proc is not mounted');
  const identity = up === 'runs' ? self : { ...self, start_ticks: '1' };
  const nothing = { processes: [], ports: {}, urls: {}, paths: {} };
  await new UpRecordFile(stateDir, { version: 1, phase: 'ready', started_at: 0, up: identity, ...nothing }).update({});
  return stateDir;
}

const says = (stateDir: string) =>
  `the database of the fleet in ${stateDir} does not answer although its \`npm start\` (process ${process.pid}) runs`;

test.for([
  ['a reading command', ['fleet', 'list']],
  ['a changing command', ['fleet', 'admit', 'app-fsn1-1']],
] as const)('up runs, its database does not answer, %s: exit 3, names the process to stop', async ([, args]) => {
  await using folder = await temporaryDirectory();
  const stateDir = await fleetWithoutDatabase(folder.path, 'runs');
  expect(await runCli([...args, '--state-dir', stateDir])).toEqual({
    code: 3,
    stdout: '',
    stderr: `pushleft-controller: ${says(stateDir)}\n  stop that with Ctrl-C and start again\n`,
  });
});

test('up runs, its database does not answer, doctor: exit 3, the table with that remedy', async () => {
  await using folder = await temporaryDirectory();
  const stateDir = await fleetWithoutDatabase(folder.path, 'runs');
  const run = await runCli(['fleet', 'doctor', '--state-dir', stateDir]);
  expect([run.code, run.stderr, plainLines(run)]).toEqual([
    3,
    '',
    ['CHECK  STATUS  DETAIL', `database  fail  ${says(stateDir)}: stop that with Ctrl-C and start again`],
  ]);
});

test('up is gone with its database: doctor says to start a fleet', async () => {
  await using folder = await temporaryDirectory();
  const stateDir = await fleetWithoutDatabase(folder.path, 'is gone');
  const run = await runCli(['fleet', 'doctor', '--json', '--state-dir', stateDir]);
  expect([run.code, JSON.parse(run.stdout).checks]).toEqual([
    3,
    [{ check: 'database', status: 'fail', detail: expect.stringContaining('start a fleet with `npm start`') }],
  ]);
});
