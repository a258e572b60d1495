import { spawn } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { appendFile, chmod, mkdir, readdir, readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { readUserData } from '../../src/hetzner/cloud-init/read-user-data.ts';
import { readEnvironmentFile } from '../../src/up/environment-files.ts';
import { removePostgres } from '../../src/up/postgres/remove-postgres.ts';
import { startPostgres } from '../../src/up/postgres/start-postgres.ts';
import { isRunning } from '../../src/up/process-identity.ts';
import { runCli } from '../cli/support/run-cli.ts';
import { CanaryScanner } from '../support/canary.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { processesOf, type RunningUp, runUp, sampleCommandLines, startUp } from './support/local-fleet.ts';

vi.setConfig({ testTimeout: 120_000 });

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let stateDir: string;
beforeAll(async () => {
  folder = await temporaryDirectory();
  stateDir = join(folder.path, '.pushleft');
});
afterAll(async () => {
  await removePostgres(stateDir);
  await folder[Symbol.asyncDispose]();
});

interface StubServer {
  readonly id: number;
  readonly name: string;
  readonly userData: string;
}

async function stubServers(): Promise<StubServer[]> {
  const state: { servers: StubServer[] } = JSON.parse(await readFile(join(stateDir, 'hetzner-stub.json'), 'utf8'));
  return state.servers.toSorted((a, b) => a.name.localeCompare(b.name));
}

/** Files whose purpose is to hold a secret, closed to others. */
const KEPT_SECRETS =
  /^(?:env\/[a-z-]+\.env|postgres-password|pki\/(?:ca|gateway)\.key|machines\/\d+\/root\/var\/lib\/pushleft\/pki\/generations\/\d+\/key\.pem)$/;
/** User-data: the one place that holds enrolment secrets by design (here the provider's memory). */
const USER_DATA = /^hetzner-stub\.json$/;

describe('up --exit-when-ready', () => {
  let first: Awaited<ReturnType<typeof runUp>>;
  let commandLines: string;
  let scanner: CanaryScanner;
  let token: string;

  beforeAll(async () => {
    const sampler = sampleCommandLines();
    first = await runUp(folder.path);
    commandLines = sampler.stop();
    const files = (await readdir(stateDir, { recursive: true })).map(String);
    const keys = files.filter((path) => path.endsWith('key') || path.endsWith('key.pem'));
    token = (await readEnvironmentFile(stateDir, 'hetzner-stub'))?.['HETZNER_STUB_TOKEN'] ?? '';
    const privateKeys = await Promise.all(
      keys.filter((path) => KEPT_SECRETS.test(path)).map(async (path) => [path, await privatePart(path)] as const),
    );
    expect(privateKeys).toHaveLength(5);
    const secrets = (await stubServers()).map(({ name, userData }) => {
      return [`secret of ${name}`, readUserData(userData).enrollmentSecret] as const;
    });
    scanner = new CanaryScanner({ ...Object.fromEntries([...privateKeys, ...secrets]), 'API token': token });
  });

  test('fresh state: ends with 0 and, as the last line, what it has come to', () => {
    expect(first).toMatchObject({ code: 0, report: { nodes_enrolled: 3, jobs_completed: 3 } });
    expect(first.report.events).toBeGreaterThan(30);
  });

  test('ended: nothing is left running', async () => {
    expect(await processesOf(stateDir)).toEqual([]);
  });

  test('secrets of the run: neither printed, logged, nor in any process’s arguments', async () => {
    expect(scanner.scan(first.output, 'output')).toEqual([]);
    expect(scanner.scan(commandLines, 'arguments')).toEqual([]);
    expect(commandLines).toContain('boot-agent.ts');
    expect(
      await scanner.scanDirectory(stateDir, (path) => isKeptSecret(path) || USER_DATA.test(relative(stateDir, path))),
    ).toEqual([]);
  });

  test('secrets of the run: not in the database, log included', async () => {
    const server = await startPostgres({ stateDir });
    const pool = createPool({ url: server.url('pushleft'), program: 'test', limits: READER_LIMITS, max: 1 });
    try {
      const { rows } = await pool.query<{ count: number }>('SELECT count(*) FROM log.events');
      expect(rows[0]?.count).toBe(first.report.events);
      expect(await scanner.scanDatabase(pool)).toEqual([]);
    } finally {
      await pool.end();
      await server.stop();
    }
  });

  test('planted in a log and in a process’s arguments: found there', async () => {
    const log = join(stateDir, 'logs', 'planted.log');
    await appendFile(log, `{"msg":"${Buffer.from(`a${token}`).toString('base64')}"}\n`);
    const sampler = sampleCommandLines();
    const planted = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)', Buffer.from(token).toString('hex')]);
    const sampled = sampler.stop();
    planted.kill();
    expect(scanner.scan(sampled, 'arguments')).toEqual([{ secret: 'API token', form: 'hex', place: 'arguments' }]);
    expect(await scanner.scanDirectory(stateDir, isKeptSecret)).toEqual(
      expect.arrayContaining([
        { secret: 'API token', form: 'base64', place: log },
        { secret: 'secret of app-fsn1-1', form: 'plain', place: join(stateDir, 'hetzner-stub.json') },
      ]),
    );
  });

  test('again on the same state: goes on with the same servers and nodes', async () => {
    const before = await stubServers();
    const again = await runUp(folder.path);
    expect(again).toMatchObject({ code: 0, report: { nodes_enrolled: 3, jobs_completed: 3 } });
    // Queued, leased, completed: three events a job, and nothing else has happened.
    expect(again.report.events).toBe(first.report.events + 9);
    expect((await stubServers()).map(({ id, name }) => [id, name])).toEqual(before.map(({ id, name }) => [id, name]));
  });
});

describe('up', () => {
  let up: RunningUp;
  let squatter: Server;

  beforeAll(async () => {
    const { gateway } = await recordedPorts();
    squatter = createServer().listen(gateway, '127.0.0.1');
    up = startUp(folder.path, ['--no-jobs'], {
      PUSHLEFT_LEASE_SECONDS: '7',
      PUSHLEFT_SCHEDULER_INTERVAL_SECONDS: '0.5',
    });
    await up.ready();
  });
  afterAll(async () => {
    squatter.close();
    await up[Symbol.asyncDispose]();
  });

  test('from a sub-folder, no variable set: commands find the fleet', async () => {
    const cwd = join(folder.path, 'some', 'where');
    await mkdir(cwd, { recursive: true });
    const { code, stdout } = await runCli(['fleet', 'list', '--json'], { cwd });
    const { nodes }: { nodes: { name: string; status: string; schedulable: boolean }[] } = JSON.parse(stdout);
    expect(code).toBe(0);
    expect(nodes.map(({ name, status, schedulable }) => [name, status, schedulable])).toEqual([
      ['app-fsn1-1', 'active', true],
      ['app-fsn1-2', 'active', true],
      ['build-fsn1-3', 'active', true],
    ]);
  });

  test('its old gateway port taken by another program: another one, which the nodes of earlier starts are told', async () => {
    const { ports } = await up.record();
    expect(ports['gateway']).not.toBe((squatter.address() as { port: number }).port);
    const queued = await runCli(['job', 'queue', 'diagnose_host', '--node', 'app-fsn1-1', '--wait', '--json'], {
      cwd: folder.path,
    });
    expect(JSON.parse(queued.stdout)).toMatchObject({ job: { status: 'completed' } });
  });

  test('settings in its environment: handed on to those that they are for', async () => {
    expect(await environmentOf(up, 'gateway')).toMatchObject({ PUSHLEFT_LEASE_SECONDS: '7' });
    expect(await environmentOf(up, 'scheduler')).toMatchObject({
      PUSHLEFT_LEASE_SECONDS: '7',
      PUSHLEFT_SCHEDULER_INTERVAL_SECONDS: '0.5',
    });
    expect(await environmentOf(up, 'gateway')).not.toHaveProperty('PUSHLEFT_SCHEDULER_INTERVAL_SECONDS');
  });

  test('listeners: at loopback alone', async () => {
    const { ports } = await up.record();
    const addresses = await listeningAddresses(Object.values(ports));
    expect(addresses).toHaveLength(4);
    expect(new Set(addresses)).toEqual(new Set(['0100007F']));
  });

  test('a second one on the same state: refused, the first goes on', async () => {
    await using second = startUp(folder.path, []);
    expect(await second.exited).toBe(1);
    expect(second.output()).toContain(`a fleet runs in ${stateDir} already (process ${up.child.pid})`);
    expect(await processesOf(stateDir)).toContain('PostgreSQL');
  });

  test('projections rebuilt under it: agents and gateway do not notice', async () => {
    expect(await runCli(['projections', 'rebuild'], { cwd: folder.path })).toMatchObject({ code: 0 });
    const queue = ['job', 'queue', 'diagnose_host', '--node', 'build-fsn1-3', '--wait', '--json'];
    expect(JSON.parse((await runCli(queue, { cwd: folder.path })).stdout)).toMatchObject({
      job: { status: 'completed' },
    });
  });

  test('killed with -9: the next one ends what was left behind, and goes on', async () => {
    const { processes } = await up.record();
    up.child.kill('SIGKILL');
    await up.exited;
    expect(await processesOf(stateDir)).toContain('PostgreSQL');
    up = startUp(folder.path, ['--no-jobs']);
    await up.ready();
    // They are recorded as they come up, and two come up at once.
    const left = processes.map(({ name, process }) => `${name} ${isRunning(process) ? 'runs' : 'is gone'}`);
    expect(left.toSorted()).toEqual(['gateway is gone', 'hetzner-stub is gone', 'scheduler is gone']);
    expect(up.output()).toContain('left behind by an earlier start');
  });

  test('a part dies: told at once, by name, with its log', async () => {
    const gateway = await up.program('gateway');
    process.kill(gateway.pid, 'SIGKILL');
    await expect.poll(() => up.output(), { timeout: 10_000 }).toContain('gateway died: signal SIGKILL');
    expect(up.output()).toContain(join(stateDir, 'logs', 'gateway.log'));
  });

  test('Ctrl-C: everything stops, exit 0, the state stays', async () => {
    up.child.kill('SIGINT');
    expect(await up.exited).toBe(0);
    expect(await processesOf(stateDir)).toEqual([]);
    expect(await up.record()).toMatchObject({ phase: 'stopped', up: null, processes: [] });
  });
});

describe('up that cannot start', () => {
  test('a key of its PKI open to others: one line that says why and names the log, exit 3, nothing left running', async () => {
    await chmod(join(stateDir, 'pki', 'ca.key'), 0o644);
    await using up = startUp(folder.path, []);
    expect(await up.exited).toBe(3);
    expect(up.output()).toMatch(/gateway ended while starting: .*PUSHLEFT_AGENT_CA_KEY.*its log is .*gateway\.log/);
    expect(await processesOf(stateDir)).toEqual([]);
  });
});

/** The private number alone: the public point, which a key file also holds, is in every certificate. */
async function privatePart(path: string): Promise<Buffer> {
  const { d } = createPrivateKey(await readFile(join(stateDir, path), 'utf8')).export({ format: 'jwk' });
  return Buffer.from(d ?? '', 'base64url');
}

function isKeptSecret(path: string): boolean {
  return KEPT_SECRETS.test(relative(stateDir, path));
}

async function recordedPorts(): Promise<Record<string, number>> {
  const { ports }: { ports: Record<string, number> } = JSON.parse(await readFile(join(stateDir, 'up.json'), 'utf8'));
  return ports;
}

/** The environment that a program of the fleet was started with. */
async function environmentOf(up: RunningUp, name: string): Promise<Record<string, string>> {
  const { pid } = await up.program(name);
  const variables = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').filter((entry) => entry !== '');
  return Object.fromEntries(variables.map((entry) => [entry.split('=')[0] ?? '', entry.slice(entry.indexOf('=') + 1)]));
}

/** The hexadecimal local addresses at which these ports are listened on (proc_net_tcp(5); state 0A). */
async function listeningAddresses(ports: readonly number[]): Promise<string[]> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8')));
  const wanted = ports.map((port) => port.toString(16).toUpperCase().padStart(4, '0'));
  return tables
    .flatMap((table) => table.split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => state === '0A' && wanted.includes(local?.split(':')[1] ?? ''))
    .map(([, local]) => local?.split(':')[0] ?? '');
}
