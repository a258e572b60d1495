import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCli, startCli } from '../cli/support/run-cli.ts';
import { startFleet, type TestFleet } from '../gateway/support/fleet.ts';
import { releaseKeys } from '../hetzner/cloud-init/support.ts';
import { provisioningWorld, someRequest, type World } from '../provisioning/support.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';

let fleet: TestFleet;
let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  [fleet, folder] = await Promise.all([startFleet(), temporaryDirectory()]);
  await writeFile(join(folder.path, 'ca.pem'), fleet.pki.bundlePem);
});
afterAll(async () => {
  await fleet[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** About what a CLI takes to start and look for the server: either create may be the first to be carried out. */
const LATE_MS = 1_500;

const RELEASE_KEY = releaseKeys().publicKey;

/** The environment of an operator's CLI. */
const environment = (world: World) => ({
  DATABASE_URL: fleet.database.url,
  HETZNER_API_TOKEN: 'stub-token',
  HETZNER_API_URL: world.url,
  PUSHLEFT_FLEET_SSH_KEYS: 'operator',
  PUSHLEFT_FLEET_OPERATOR_CIDRS: '203.0.113.0/24',
  PUSHLEFT_FLEET_GATEWAY_CA_FILE: join(folder.path, 'ca.pem'),
  PUSHLEFT_GATEWAY_URL: fleet.gateway.agentUrl,
  PUSHLEFT_ENROLL_URL: fleet.gateway.enrollUrl,
  PUSHLEFT_RELEASE_URL: 'https://releases.example.org/agent',
  PUSHLEFT_RELEASE_PUBKEY: RELEASE_KEY,
  PUSHLEFT_AGENT_VERSION: '0.1.0',
});

/** Starts `fleet provision` and kills it as soon as the condition holds of its output. */
async function killWhen(world: World, name: string, reached: (output: string) => boolean) {
  const order = ['--pool', 'application', '--region', 'fsn1', '--type', 'cx33', '--name', name];
  const child = startCli(['fleet', 'provision', ...order], { env: environment(world) });
  const ended = Promise.withResolvers<NodeJS.Signals | null>();
  child.once('exit', (_, signal) => ended.resolve(signal));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (reached(output)) child.kill('SIGKILL');
  });
  const kill = setInterval(() => reached(output) && child.kill('SIGKILL'), 5);
  expect(await ended.promise, output).toBe('SIGKILL');
  clearInterval(kill);
}

async function resumedToOne(world: World, name: string) {
  await world.hostsSettled();
  const resumed = await runCli(['fleet', 'provision', '--resume', name, '--json'], { env: environment(world) });
  expect(resumed.stderr).toBe('');
  expect(JSON.parse(resumed.stdout)).toMatchObject({ name, provision_state: 'enrolled' });
  expect(world.servers().map((server) => server.name)).toEqual([name]);
  expect(await world.nodesNamed(name)).toBe(1);
}

describe('fleet provision, killed with -9', () => {
  test.each([
    ['the node was requested', 'node_provisioning_requested at'],
    ['the firewall is converged', 'converging firewall'],
    ['the secret is armed', 'node_enrollment_secret_armed at'],
    ['the server is recorded', 'node_server_requested at'],
    ['the server runs', 'node_server_running at'],
  ])('once %s: --resume ends with one server and an enrolled node', async (_, line) => {
    await using world = await provisioningWorld(fleet, { nowMs: Date.now, actionMs: 20 });
    const { name } = someRequest();
    await killWhen(world, name, (output) => output.includes(line));
    await resumedToOne(world, name);
  });

  test('with the create still in flight, which arrives when the node is being resumed: one server, enrolled', async () => {
    const fault = { kind: 'delay', delayMs: LATE_MS } as const;
    const faults = [{ match: { method: 'POST' as const, path: '/v1/servers' }, nth: 1, fault }];
    await using world = await provisioningWorld(fleet, { nowMs: Date.now, actionMs: 20, faults });
    const { name } = someRequest();
    await killWhen(world, name, () => world.creates() === 1);
    expect(world.servers()).toEqual([]);
    const lateAt = Date.now() + LATE_MS;
    await resumedToOne(world, name);
    // Its sender is dead, so nobody is told of its answer: the clock alone says that it was dealt with.
    await waitFor(() => Date.now() > lateAt + 200, { what: 'the late create was dealt with' });
    expect(world.servers().map((server) => server.name)).toEqual([name]);
  });
});
