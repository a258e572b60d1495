import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../src/up/postgres/start-postgres.ts';
import { argumentsOf } from '../../../src/up/process-identity.ts';
import { queryValue, type TemporaryState, temporaryState } from './state.ts';

describe('fresh state directory', () => {
  let state: TemporaryState;
  let server: PostgresServer;
  beforeAll(async () => {
    state = await temporaryState();
    server = await startPostgres({ stateDir: state.stateDir, sharedMemoryDir: '/no/such/folder' });
  });
  afterAll(async () => {
    await server.stop();
    await state[Symbol.asyncDispose]();
  });

  test('started: answers over a socket in a folder closed to others, and listens on no address', async () => {
    expect(await queryValue(server.superuserUrl, 'SHOW server_version_num')).toMatch(/^18/);
    expect(await queryValue(server.superuserUrl, 'SHOW listen_addresses')).toBe('');
    expect((await stat(server.socketDir)).mode & 0o777).toBe(0o700);
    expect((await stat(server.dataDir)).mode & 0o777).toBe(0o700);
    expect((await stat(server.dataDir)).uid).not.toBe(0);
  });

  test('started: the password is random, in a file of 0600, and in no argument of the process', async () => {
    const passwordFile = join(state.stateDir, 'postgres-password');
    const password = await readFile(passwordFile, 'utf8');
    expect(password).toMatch(/^[\w-]{32}$/);
    expect((await stat(passwordFile)).mode & 0o777).toBe(0o600);
    expect(new URL(server.superuserUrl.replace('@/', '@localhost/')).password).toBe(password);
    expect(argumentsOf(server.pid).join(' ')).not.toContain(password);
  });

  test('connection without or with a wrong password: refused', async () => {
    await expect(queryValue(server.url('postgres', 'pushleft', 'wrong'), 'SELECT 1')).rejects.toThrow(
      'password authentication failed for user "pushleft"',
    );
    await expect(queryValue(server.url('postgres', 'stranger'), 'SELECT 1')).rejects.toThrow('password');
  });

  test('statement that fails: the log has the error without the password it held', async () => {
    await expect(queryValue(server.superuserUrl, `CREATE ROLE pushleft PASSWORD 'canary-7'`)).rejects.toThrow('exists');
    const log = await readFile(server.logFile, 'utf8');
    expect(log).toContain('role "pushleft" already exists');
    expect(log).not.toContain('canary-7');
  });

  test('durable unless told otherwise', async () => {
    expect(await queryValue(server.superuserUrl, 'SHOW fsync')).toBe('on');
    expect(await queryValue(server.superuserUrl, 'SHOW synchronous_commit')).toBe('on');
    expect(await queryValue(inject('superuserUrl'), 'SHOW fsync')).toBe('off');
  });

  test('no /dev/shm: shared memory lies in files', async () => {
    expect(await queryValue(server.superuserUrl, 'SHOW dynamic_shared_memory_type')).toBe('mmap');
  });

  test('a second state directory: another password and another socket', async () => {
    await using other = await temporaryState();
    const second = await startPostgres({ stateDir: other.stateDir, durable: false });
    expect(await readFile(join(other.stateDir, 'postgres-password'), 'utf8')).not.toBe(
      await readFile(join(state.stateDir, 'postgres-password'), 'utf8'),
    );
    expect(second.socketDir).not.toBe(server.socketDir);
    await second.stop('immediate');
  });
});

describe('state directory in use before', () => {
  let state: TemporaryState;
  let dataDir: string;
  /** One cluster serves all: initdb is what takes the time. */
  const start = (log?: (line: string) => void) =>
    startPostgres({ stateDir: state.stateDir, durable: false, ...(log === undefined ? {} : { log }) });
  beforeAll(async () => {
    state = await temporaryState();
    const server = await start();
    dataDir = server.dataDir;
    await queryValue(server.superuserUrl, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await server.stop();
  });
  afterAll(() => state[Symbol.asyncDispose]());

  test('started again: the data and the password are kept', async () => {
    const password = await readFile(join(state.stateDir, 'postgres-password'), 'utf8');
    const server = await start();
    expect(server.superuserUrl).toContain(`:${password}@/`);
    expect(await queryValue(server.superuserUrl, 'SELECT answer FROM kept')).toBe(42);
    await server.stop();
  });

  test('server killed with -9: says so with its last log lines, and starts again with what was committed', async () => {
    const first = await start();
    await queryValue(first.superuserUrl, 'CREATE TABLE just_committed AS SELECT 43 AS answer');
    process.kill(first.pid, 'SIGKILL');
    const exit = await first.exited;
    expect(exit).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(exit.lastLogLines.join('\n')).toContain('ready to accept connections');
    const second = await start();
    expect(await queryValue(second.superuserUrl, 'SELECT answer FROM just_committed')).toBe(43);
    await second.stop();
  });

  test('data of another major version: refused with both versions', async () => {
    await writeFile(join(dataDir, 'PG_VERSION'), '17\n');
    await expect(start()).rejects.toThrow(/was written by PostgreSQL 17, installed is 18/);
    await writeFile(join(dataDir, 'PG_VERSION'), '18\n');
  });

  test('server that cannot start: the error holds the reason from its log', async () => {
    const settings = join(dataDir, 'postgresql.conf');
    const before = await readFile(settings, 'utf8');
    await writeFile(settings, `${before}no_such_setting = 'x'\n`);
    await expect(start()).rejects.toThrow(
      /PostgreSQL ended while starting: exit code 1; .*unrecognized configuration parameter "no_such_setting"/,
    );
    await writeFile(settings, before);
  });

  test('state directory deleted and made anew: the old data are set aside, neither served nor lost', async () => {
    for (const name of ['postgres.json', 'postgres-password']) await rm(join(state.stateDir, name));
    const said: string[] = [];
    const server = await start((line) => said.push(line));
    const besidesWaiting = said.filter((line) => !line.startsWith('PostgreSQL: still '));
    const setAside = `PostgreSQL: data of a deleted state directory set aside at ${dataDir}.of-deleted-state`;
    expect(besidesWaiting).toEqual([setAside]);
    expect(await queryValue(server.superuserUrl, `SELECT to_regclass('kept')`)).toBe(null);
    expect(await readFile(join(`${dataDir}.of-deleted-state`, 'PG_VERSION'), 'utf8')).toBe('18\n');
    await server.stop();
  });

  test('creation cut short: begun anew', async () => {
    const unfinished = `${dataDir}.unfinished`;
    await rm(dataDir, { recursive: true });
    await mkdir(unfinished);
    await writeFile(join(unfinished, 'half'), '');
    const server = await start();
    expect(await queryValue(server.superuserUrl, 'SELECT 1')).toBe(1);
    await expect(stat(unfinished)).rejects.toThrow('ENOENT');
    await server.stop();
  });
});
