import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { HOST_PATHS } from '../../src/hetzner/cloud-init/host-paths.ts';
import { recordedMachines, stubPlaces } from '../../src/up/machines.ts';
import { runCli, startCli } from '../cli/support/run-cli.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';
import { commandsOf, type DocumentedCommand } from './support/console-blocks.ts';
import { type RunningUp, startUp } from './support/local-fleet.ts';

const ROOT = join(import.meta.dirname, '../..');
const VICTIM = 'app-fsn1-1';
const AGENT = join(ROOT, 'agent/bin/pushleft-agent.js');

const cleanup = new AsyncDisposableStack();
let folder: string;
let up: RunningUp;
let pool: Pool;

beforeAll(async () => {
  ({ path: folder } = cleanup.use(await temporaryDirectory()));
  up = cleanup.use(startUp(folder, ['--nodes', '2', '--no-jobs'], { PUSHLEFT_AGENT_RENEW_CHECK_SECONDS: '1' }));
  await up.ready();
  const url = (await up.environment('operator'))['DATABASE_URL'] ?? '';
  pool = cleanup.adopt(createPool({ url, program: 'test', limits: READER_LIMITS, max: 2 }), (opened) => opened.end());
}, 180_000);

afterAll(() => cleanup.disposeAsync());

/** What has gone wrong before a runbook is taken out, and what is looked at once it was followed. */
interface Drill {
  readonly goWrong?: () => Promise<void>;
  readonly afterwards?: () => Promise<void>;
}

const drills: Readonly<Record<string, Drill>> = {
  'half-finished-rotation.md': { goWrong: beginAndDie },
  'ca-rotation.md': {},
  'stolen-agent-key.md': { goWrong: stealAndRenewFirst, afterwards: thiefIsOut },
  'gateway-certificate-expired.md': {},
  'stolen-ca-key.md': {},
  'mass-silence.md': {},
  'lost-ingress-host.md': {},
  'lost-database-node.md': {},
  'drain-that-does-not-end.md': {},
  'whole-fleet-expired.md': { goWrong: revokeAll },
};

test('every runbook has its drill', () =>
  expect(
    readdirSync(join(ROOT, 'docs/runbooks'))
      .filter((name) => name !== 'README.md')
      .toSorted(),
  ).toEqual(Object.keys(drills).toSorted()));

describe.each(Object.entries(drills))('docs/runbooks/%s', (name, { goWrong, afterwards }) => {
  test('tried: every command works, and the fleet is whole afterwards', { timeout: 180_000 }, async () => {
    await goWrong?.();
    for (const command of commandsOf(`docs/runbooks/${name}`)) await run(command);
    await afterwards?.();
    expect(await agentsOut()).toEqual([]);
  });
});

/** The operator's terminal dies right after the rotation has begun; the agents are asleep, so that nothing is issued by the new CA. */
async function beginAndDie(): Promise<void> {
  signalAgents('SIGSTOP');
  const begun = startCli(['fleet', 'ca', 'rotate', '--begin'], { cwd: folder });
  const closed = once(begun, 'close');
  await waitFor(async () => (await count(`SELECT FROM log.events WHERE type = 'ca_rotation_begun'`)) > 0, {
    what: 'the rotation has begun',
    deadlineMs: 30_000,
    intervalMs: 5,
  });
  begun.kill('SIGKILL');
  await closed;
}

/** The host's identity is copied while its agent sleeps; whoever has the copy renews, which is due in a rotation, and leases first. */
async function stealAndRenewFirst(): Promise<void> {
  const machine = await machineOf(VICTIM);
  signalAgents('SIGSTOP', VICTIM);
  await cp(join(machine, dirname(HOST_PATHS.enrollmentSecret)), thiefsCopy(), {
    recursive: true,
    verbatimSymlinks: true,
  });
  expect(await runCli(['fleet', 'ca', 'rotate', '--begin'], { cwd: folder })).toMatchObject({ code: 0 });
  expect(await runAgent(VICTIM, ['renew-certificate'], thiefsCopy())).toMatchObject({ code: 0 });
  const thief = startAgent(machine, ['run'], thiefsCopy());
  await waitFor(
    async () =>
      (await count(
        `SELECT FROM fleet.fleet_node_certificates JOIN fleet.fleet_nodes USING (node_id)
         WHERE name = $1 AND cause = 'renewal' AND issuer_ca_sha256 = (SELECT issuing_ca_sha256 FROM fleet.fleet_ca) AND ${USABLE}`,
        [VICTIM],
      )) === 1,
    { what: 'the thief has leased', deadlineMs: 60_000 },
  );
  thief.kill('SIGKILL');
  await once(thief, 'close');
  signalAgents('SIGCONT', VICTIM);
  expect(await runAgent(VICTIM, ['doctor', '--json'])).toMatchObject({ code: 1 });
  expect(await runAgent(VICTIM, ['doctor', '--json'], thiefsCopy())).toMatchObject({ code: 0 });
}

/** What the thief holds is worth nothing; then the rotation that made the renewal due is ended. */
async function thiefIsOut(): Promise<void> {
  expect(await runAgent(VICTIM, ['renew-certificate'], thiefsCopy())).toMatchObject({ code: 1 });
  await moved();
  expect(await runCli(['fleet', 'ca', 'rotate', '--complete'], { cwd: folder })).toMatchObject({ code: 0 });
}

/** As if two days had passed: nothing of any node is in force. */
async function revokeAll(): Promise<void> {
  for (const node of ['app-fsn1-1', 'app-fsn1-2']) {
    expect(await runCli(['fleet', 'certificates', 'revoke', node], { cwd: folder })).toMatchObject({ code: 0 });
  }
}

async function run({ line, node, args }: DocumentedCommand): Promise<void> {
  if (args.includes('--complete')) await moved();
  const ended = node === undefined ? await runCli(args, { cwd: folder }) : await runAgent(node, args);
  expect({ line, ...ended }).toMatchObject({ line, code: 0 });
  if (args.includes('--abort')) signalAgents('SIGCONT');
  if (node !== undefined) await used(node);
}

/** Runs the agent's program on a machine of the stub, with what the machine was told at its boot; on its own state, or on a copy. */
async function runAgent(name: string, args: readonly string[], state?: string) {
  const agent = startAgent(await machineOf(name), args, state);
  const [stdout, stderr, [code]] = await Promise.all([text(agent.stdout), text(agent.stderr), once(agent, 'close')]);
  return { code, stdout, stderr };
}

function startAgent(machine: string, args: readonly string[], state?: string) {
  const env = state === undefined ? {} : { PUSHLEFT_AGENT_STATE_DIR: state };
  const environment = ['--environment-file', join(machine, HOST_PATHS.environment)];
  return spawn(process.execPath, [AGENT, ...args, ...environment], { cwd: folder, env });
}

async function machineOf(name: string): Promise<string> {
  const { rows } = await pool.query<{ server_id: number }>('SELECT server_id FROM fleet.fleet_nodes WHERE name = $1', [
    name,
  ]);
  return join(stubPlaces(up.stateDir).machinesDir, String(rows[0]?.server_id), 'root');
}

const thiefsCopy = () => join(folder, 'thief');

/** To all agents, or to that of one node. */
function signalAgents(signal: NodeJS.Signals, only?: string): void {
  for (const { name, process: machine } of recordedMachines(up.stateDir)) {
    if (only === undefined || name === `machine ${only}`) process.kill(-machine.pid, signal);
  }
}

async function count(query: string, values: unknown[] = []): Promise<number> {
  return (await pool.query(query, values)).rowCount ?? 0;
}

const USABLE = 'revoked_at IS NULL AND first_used_at IS NOT NULL AND not_after > now()';

/** Every node has used a certificate of the CA that issues. */
const moved = () =>
  waitFor(
    async () =>
      (await count(
        `SELECT DISTINCT node_id FROM fleet.fleet_node_certificates, fleet.fleet_ca
         WHERE issuer_ca_sha256 = issuing_ca_sha256 AND ${USABLE}`,
      )) === 2,
    { what: 'the nodes have moved', deadlineMs: 60_000 },
  );

const used = (name: string) =>
  waitFor(
    async () =>
      (await count(
        `SELECT FROM fleet.fleet_node_certificates JOIN fleet.fleet_nodes USING (node_id)
         WHERE name = $1 AND cause = 'reenrollment' AND ${USABLE}`,
        [name],
      )) > 0,
    { what: `${name} is back`, deadlineMs: 60_000 },
  );

/** Nodes without a certificate in force. */
async function agentsOut(): Promise<unknown[]> {
  const { rows } = await pool.query(
    `SELECT name FROM fleet.fleet_nodes WHERE node_id NOT IN (SELECT node_id FROM fleet.fleet_node_certificates WHERE ${USABLE})`,
  );
  return rows;
}
