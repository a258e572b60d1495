import { hash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ProvisionOutcome } from '../../src/provisioning/outcome.ts';
import type { ProvisionProgress } from '../../src/provisioning/ports.ts';
import { checkRequest, provisionNode, resumeNode, retryNode } from '../../src/provisioning/provision.ts';
import type { FaultPlanInput } from '../../stubs/hetzner/faults.ts';
import { startFleet, type TestFleet } from '../gateway/support/fleet.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { provisioningWorld, someRequest, type World } from './support.ts';
import { Tap } from './tap.ts';

const cleanup = new AsyncDisposableStack();
let fleet: TestFleet;
let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  folder = cleanup.use(await temporaryDirectory());
  fleet = cleanup.use(await startFleet());
});
afterAll(() => cleanup.disposeAsync());

const codes = (outcome: ProvisionOutcome) => (outcome.ok ? outcome.state : outcome.refusals.map(({ code }) => code));
const onCreate = (fault: FaultPlanInput[number]['fault']): FaultPlanInput => [
  { match: { method: 'POST', path: '/v1/servers' }, nth: 1, fault },
];
const typesOf = (outcome: ProvisionOutcome) => outcome.events.map(({ type }) => type);
/** Calls `once` right before the first operation of this label. */
function tapBefore(label: string, once: () => Promise<unknown>): Tap {
  const tap = new Tap();
  let pending: (() => Promise<unknown>) | undefined = once;
  const through = tap.through.bind(tap);
  tap.through = async (what, effect) => {
    if (what === label && pending !== undefined) {
      const run = pending;
      pending = undefined;
      await run();
    }
    return through(what, effect);
  };
  return tap;
}

describe('provision', () => {
  test('nothing in the way: every step is an event, and the node has enrolled', async () => {
    await using world = await provisioningWorld(fleet, { enrols: 'when_awaited' });
    const request = someRequest({ pool: 'database' });
    const steps: ProvisionProgress['step'][] = [];
    const outcome = await provisionNode(world.ports(), request, { onProgress: ({ step }) => void steps.push(step) });
    expect(outcome).toMatchObject({ ok: true, nodeId: request.nodeId, name: request.name, state: 'enrolled' });
    expect(typesOf(outcome)).toEqual([
      'node_provisioning_requested',
      'pool_firewall_converged',
      'node_capacity_recorded',
      'node_enrollment_secret_armed',
      'node_server_requested',
      'node_server_running',
    ]);
    expect([...new Set(steps)]).toEqual([
      'validate',
      'request',
      'server',
      'firewall',
      'capacity',
      'secret',
      'running',
      'enrollment',
    ]);
    const [server] = world.stub.state().servers;
    expect(server).toMatchObject({
      name: request.name,
      serverType: 'cx33',
      labels: { 'pushleft.node_id': request.nodeId, 'pushleft.org': 'platform', 'pushleft.pool': 'database' },
      firewalls: [{ id: world.stub.state().firewalls[0]?.id }],
    });
    expect(await world.readNode(request.nodeId)).toMatchObject({
      status: 'active',
      provision_state: 'enrolled',
      server_id: server?.id,
      location: 'fsn1',
      public_ipv4: server?.ipv4,
      cpu_millis: 3_500,
      memory_mb: 7_168,
      disk_gb: 60,
      architecture: 'x86',
    });
  });

  test('without a name: a readable one of pool, region and four characters', async () => {
    await using world = await provisioningWorld(fleet);
    const { name: _, nodeId: __, ...request } = someRequest({ pool: 'build', region: 'nbg1' });
    const outcome = await provisionNode(world.ports(), request);
    expect(outcome).toMatchObject({ ok: true, name: expect.stringMatching(/^build-nbg1-[a-z2-7]{4}$/) });
  });

  test('the secret: armed before the create, 256 bits, and only its digest is written down', async () => {
    await using world = await provisioningWorld(fleet, { enrols: 'never' });
    const request = someRequest();
    await provisionNode(world.ports(), request, { wait: false });
    const secret = /[0-9a-f]{64}(?=\n)/.exec(world.stub.state().servers[0]?.userData ?? '')?.[0] ?? '';
    const node = await world.readNode(request.nodeId);
    expect(node?.armed_secrets.map(({ sha256 }) => sha256)).toEqual([hash('sha256', Buffer.from(secret, 'hex'))]);
    const { rows } = await fleet.database.pool.query('SELECT body FROM log.events');
    expect(JSON.stringify(rows)).not.toContain(secret);
  });

  test('no waiting: ends when only the enrolment is missing; resumed: waits for it', async () => {
    await using world = await provisioningWorld(fleet, { enrols: 'when_awaited' });
    const request = someRequest();
    const ports = world.ports();
    // Seen through a reader that does not make the host enrol.
    const first = await provisionNode({ ...ports, readNode: world.readNode }, request, { wait: false });
    expect(codes(first)).toBe('awaiting_enrollment');
    expect(codes(await resumeNode(ports, request.nodeId))).toBe('enrolled');
  });

  test('provisioned already: nothing is appended and nothing is created', async () => {
    await using world = await provisioningWorld(fleet);
    const request = someRequest();
    await provisionNode(world.ports(), request);
    const writes = world.stub.requests().filter(({ method }) => method !== 'GET').length;
    expect(await resumeNode(world.ports(), request.nodeId)).toMatchObject({ ok: true, events: [] });
    expect(await provisionNode(world.ports(), request)).toMatchObject({ ok: true, events: [] });
    expect(world.stub.requests().filter(({ method }) => method !== 'GET')).toHaveLength(writes);
  });
});

describe('refused before there is a node', () => {
  const refusedAs = async (world: World, request = someRequest(), changes = {}) => {
    const outcome = await provisionNode(world.ports(undefined, changes), request);
    expect(outcome).toMatchObject({ ok: false, nodeId: null, events: [] });
    expect(await world.readNode(request.nodeId)).toBeUndefined();
    return codes(outcome);
  };

  test('several mistakes: all are told at once', async () => {
    await using world = await provisioningWorld(fleet);
    const request = someRequest({ serverType: 'cx22', image: 'ubuntu-18.04' });
    expect(await refusedAs(world, request, { sshKeys: ['nobody'] })).toEqual([
      'server_type_gone',
      'image_unknown',
      'ssh_key_unknown',
    ]);
  });

  test('a type that is sold out', async () => {
    const soldOut = [{ serverType: 'cx33', location: 'fsn1' }];
    await using world = await provisioningWorld(fleet, { catalogue: { soldOut } });
    expect(await refusedAs(world)).toEqual(['server_type_unavailable']);
  });

  test('a name that is no host name, or settings that cannot be used: no call is made', async () => {
    await using world = await provisioningWorld(fleet);
    expect(await refusedAs(world, someRequest({ name: 'App_1' }), { operatorCidrs: ['10.0.0.1/8'] })).toEqual([
      'name_invalid',
      'cidr_invalid',
    ]);
    const caFile = join(folder.path, 'large.pem');
    await writeFile(caFile, fleet.pki.bundlePem.repeat(60));
    expect(await refusedAs(world, someRequest(), { caFile })).toEqual(['user_data_invalid']);
    expect(world.stub.requests()).toEqual([]);
  });

  test('a name that a server of somebody else has', async () => {
    await using world = await provisioningWorld(fleet);
    const request = someRequest();
    await world.plant(request.name);
    expect(await refusedAs(world, request)).toEqual(['server_name_taken']);
  });

  test('a name that another node has', async () => {
    await using world = await provisioningWorld(fleet);
    await using elsewhere = await provisioningWorld(fleet);
    const request = someRequest();
    await provisionNode(elsewhere.ports(), request);
    expect(await refusedAs(world, someRequest({ name: request.name }))).toEqual(['node_name_taken']);
  });

  test('the provider refuses the token', async () => {
    await using world = await provisioningWorld(fleet, { token: 'another-token' });
    expect(codes(await provisionNode(world.ports(), someRequest()))).toEqual(['provider_failed']);
  });

  test('a check alone: answers the plan and does nothing', async () => {
    await using world = await provisioningWorld(fleet);
    const request = someRequest();
    expect(await checkRequest(world.ports(), request)).toMatchObject({
      ok: true,
      value: { name: request.name, placement: { serverType: 'cx33', capacity: { cpuMillis: 3_500 } } },
    });
    expect(await world.readNode(request.nodeId)).toBeUndefined();
    expect(world.stub.requests().filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

describe('trouble with the create', () => {
  test.each<[string, FaultPlanInput[number]['fault']]>([
    ['its answer is lost', { kind: 'lose_response' }],
    ['502 after it was done', { kind: 'handle_then_status' }],
    ['the server does not start at first', { kind: 'action_error', command: 'start_server' }],
  ])('%s: one run ends with one server and an enrolled node', async (_, fault) => {
    await using world = await provisioningWorld(fleet, { faults: onCreate(fault) });
    const request = someRequest();
    expect(codes(await provisionNode(world.ports(), request))).toBe('enrolled');
    expect(world.servers()).toEqual([{ name: request.name, nodeId: request.nodeId }]);
    expect(world.creates()).toBe(1);
  });

  test('502 and it was not done: unresolved, never sent twice by one run; resumed: one server', async () => {
    const fault = { kind: 'status', status: 502, code: 'bad_gateway' } as const;
    await using world = await provisioningWorld(fleet, { faults: onCreate(fault) });
    const request = someRequest();
    expect(codes(await provisionNode(world.ports(), request))).toEqual(['server_create_unresolved']);
    expect(world.creates()).toBe(1);
    expect(codes(await resumeNode(world.ports(), request.nodeId))).toBe('enrolled');
    expect(world.servers()).toEqual([{ name: request.name, nodeId: request.nodeId }]);
  });

  test('409 because of our own server, which came late: adopted', async () => {
    await using world = await provisioningWorld(fleet, { nameTakenBy: 'ours' });
    const request = someRequest();
    const outcome = await provisionNode(world.ports(), request);
    expect(codes(outcome)).toBe('enrolled');
    expect(typesOf(outcome)).toContain('node_server_adopted');
    expect(world.servers()).toEqual([{ name: request.name, nodeId: request.nodeId }]);
  });

  test("409 because of a stranger's server: refused, not adopted; resumed when the name is free: enrolled", async () => {
    await using world = await provisioningWorld(fleet, { nameTakenBy: 'stranger' });
    const request = someRequest();
    expect(await provisionNode(world.ports(), request)).toMatchObject({
      refusals: [{ code: 'server_name_taken', remedy: expect.stringContaining('--resume') }],
    });
    expect(world.servers()).toEqual([{ name: request.name, nodeId: undefined }]);
    await world.remove(request.name);
    expect(codes(await resumeNode(world.ports(), request.nodeId))).toBe('enrolled');
    expect(world.servers()).toEqual([{ name: request.name, nodeId: request.nodeId }]);
  });

  test('its start never ends: told which server, and that one is kept', async () => {
    await using world = await provisioningWorld(fleet, {
      faults: onCreate({ kind: 'never_finishes', command: 'start_server' }),
    });
    const request = someRequest();
    expect(await provisionNode(world.ports(), request)).toMatchObject({
      refusals: [{ code: 'server_not_running_in_time', message: expect.stringContaining(request.name) }],
    });
    expect(world.servers()).toEqual([{ name: request.name, nodeId: request.nodeId }]);
  });

  test('it fails for good: given up; --retry deletes the broken server and makes another', async () => {
    const faults = onCreate({ kind: 'action_error', command: 'create_server' });
    await using world = await provisioningWorld(fleet, { faults });
    const request = someRequest();
    const outcome = await provisionNode(world.ports(), request);
    expect(outcome).toMatchObject({
      refusals: [{ code: 'server_create_failed', remedy: expect.stringContaining('--retry') }],
    });
    expect(codes(await resumeNode(world.ports(), request.nodeId))).toEqual(['provisioning_failed']);
    expect(codes(await retryNode(world.ports(), request.nodeId))).toBe('enrolled');
    expect(world.servers()).toEqual([{ name: request.name, nodeId: request.nodeId }]);
    expect(world.creates()).toBe(2);
  });
});

describe('a node that does not enrol', () => {
  const shortSecret = { secretTtlMs: 200 };
  const failed = async (world: World) => {
    const request = someRequest();
    const outcome = await provisionNode(world.ports(undefined, shortSecret), request);
    expect(outcome).toMatchObject({
      refusals: [{ code: 'provisioning_failed', message: expect.stringContaining('enrollment secret expired') }],
    });
    return request;
  };

  test('its secret ends: failed, its server still recorded', async () => {
    await using world = await provisioningWorld(fleet, { enrols: 'never' });
    const { nodeId } = await failed(world);
    expect(await world.readNode(nodeId)).toMatchObject({
      provision_state: 'failed',
      server_id: world.stub.state().servers[0]?.id,
    });
  });

  test('--retry: the billed server goes, another one comes', async () => {
    await using world = await provisioningWorld(fleet, { enrols: 'never' });
    const { nodeId } = await failed(world);
    const before = world.stub.state().servers[0]?.id;
    const outcome = await retryNode(world.ports(), nodeId, { wait: false });
    expect(codes(outcome)).toBe('awaiting_enrollment');
    expect(typesOf(outcome).slice(0, 2)).toEqual(['node_server_deleted', 'node_provisioning_retried']);
    const [server, ...others] = world.stub.state().servers;
    expect(others).toEqual([]);
    expect(server?.id).not.toBe(before);
    expect(await world.readNode(nodeId)).toMatchObject({ server_id: server?.id });
  });

  test('--retry of a protected server: refused, the node stays failed', async () => {
    await using world = await provisioningWorld(fleet, { enrols: 'never' });
    const { nodeId } = await failed(world);
    const fault = { kind: 'status', status: 403, code: 'protected' } as const;
    world.stub.setFaults([{ match: { method: 'DELETE', path: '/v1/servers/*' }, fault }]);
    expect(codes(await retryNode(world.ports(), nodeId))).toEqual(['server_protected']);
    expect(await world.readNode(nodeId)).toMatchObject({ provision_state: 'failed' });
    expect(world.servers()).toHaveLength(1);
  });

  test('--retry of a node that has not failed: refused', async () => {
    await using world = await provisioningWorld(fleet);
    const request = someRequest();
    await provisionNode(world.ports(), request);
    expect(codes(await retryNode(world.ports(), request.nodeId))).toEqual(['node_not_failed']);
  });

  test('its server was deleted by hand before it ran: given up at once; --retry makes another', async () => {
    await using world = await provisioningWorld(fleet, { enrols: 'when_awaited' });
    const request = someRequest();
    const tap = tapBefore('GET /servers/:id', () => world.remove(request.name));
    expect(await provisionNode(world.ports(tap), request)).toMatchObject({
      refusals: [{ code: 'server_vanished', remedy: expect.stringContaining('--retry') }],
    });
    expect(await world.readNode(request.nodeId)).toMatchObject({
      provision_state: 'failed',
      failure_reason: 'server_vanished',
    });
    expect(codes(await retryNode(world.ports(), request.nodeId))).toBe('enrolled');
    expect(world.servers()).toEqual([{ name: request.name, nodeId: request.nodeId }]);
  });

  test('unknown node: refused', async () => {
    await using world = await provisioningWorld(fleet);
    const { nodeId } = someRequest();
    expect(codes(await resumeNode(world.ports(), nodeId))).toEqual(['node_unknown']);
    expect(codes(await retryNode(world.ports(), nodeId))).toEqual(['node_unknown']);
  });
});

describe('two operators', () => {
  test('one resumes while the other creates: refused, told who; one server', async () => {
    await using world = await provisioningWorld(fleet);
    const request = someRequest();
    let second: ProvisionOutcome | undefined;
    const tap = tapBefore('POST /servers', async () => {
      second = await resumeNode(world.ports(), request.nodeId);
    });
    expect(codes(await provisionNode(world.ports(tap), request))).toBe('enrolled');
    expect(second).toMatchObject({
      ok: false,
      refusals: [{ code: 'node_locked', message: expect.stringContaining('provision ada@ops') }],
    });
    expect(world.servers()).toHaveLength(1);
  });

  test('the lock is lost in the middle: the run ends before its next step; resumed: one server', async () => {
    await using world = await provisioningWorld(fleet);
    const request = someRequest();
    const tap = tapBefore('append arm_secret', () =>
      fleet.database.pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'pushleft provision%' AND datname = current_database()`,
      ),
    );
    expect(codes(await provisionNode(world.ports(tap), request))).toEqual(['lock_lost']);
    expect(world.creates()).toBe(0);
    expect(codes(await resumeNode(world.ports(), request.nodeId))).toBe('enrolled');
    expect(world.servers()).toHaveLength(1);
  });

  test('Ctrl-C while the enrolment is awaited: told how to go on; resumed: enrolled', async () => {
    await using world = await provisioningWorld(fleet, { enrols: 'when_awaited' });
    const request = someRequest();
    const stopping = new AbortController();
    const onProgress = ({ step }: ProvisionProgress) => (step === 'enrollment' ? stopping.abort() : undefined);
    const outcome = await provisionNode(world.ports(), request, { signal: stopping.signal, onProgress });
    expect(outcome).toMatchObject({
      refusals: [{ code: 'interrupted', remedy: expect.stringContaining(`--resume ${request.nodeId}`) }],
    });
    expect(codes(await resumeNode(world.ports(), request.nodeId))).toBe('enrolled');
  });
});
