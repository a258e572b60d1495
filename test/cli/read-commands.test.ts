import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { fleetMaker, REPORT } from './support/fleet.ts';
import { type CliRun, runCli } from './support/run-cli.ts';

const APP = '11111111-1111-4111-8111-111111111111';
const BUILD = '22222222-2222-4222-8222-222222222222';
const WAITING = '33333333-3333-4333-8333-333333333333';
const JOB = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';

let database: TestDatabase;
let env: Record<string, string>;
const cli = (...args: string[]): Promise<CliRun> => runCli(args, { env });
const json = async (...args: string[]) => JSON.parse((await cli(...args, '--json')).stdout);
/** Lines with runs of blanks as one, so that a column's width does not matter. */
const lines = ({ stdout }: CliRun) => stdout.trimEnd().split('\n').map((line) => line.trim().replaceAll(/\s{2,}/g, '  '));

beforeAll(async () => {
  database = await createTestDatabase();
  env = { DATABASE_URL: database.url };
  await using fleet = fleetMaker(database.url);
  const fingerprint = await fleet.enrollNode(APP, 'app-one');
  await fleet.enrollNode(BUILD, 'build-one', 'build');
  await fleet.requestNode(WAITING, 'app-two');
  await fleet.runJob(JOB, APP, fingerprint);
});

afterAll(() => database.drop());

describe('fleet list', () => {
  test('three nodes: a table in the order of pool and name', async () => {
    const run = await cli('fleet', 'list');
    expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
    expect(lines(run).map((line) => line.replace(/\d+s ago/, 'N ago'))).toEqual([
      'NAME  POOL  REGION  STATUS  SCHEDULABLE  CPU  MEMORY  DISK  LAST SEEN  AGENT  ID',
      'app-one  application  fsn1  active  no  3.5  7 GB  60 GB  N ago  0.1.0  11111111',
      'app-two  application  fsn1  provisioning (pending)  no  -  -  -  never  -  33333333',
      'build-one  build  fsn1  active  no  3.5  7 GB  60 GB  N ago  0.1.0  22222222',
    ]);
  });
});
