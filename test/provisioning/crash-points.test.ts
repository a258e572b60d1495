import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { provisionNode, resumeNode, retryNode } from '../../src/provisioning/provision.ts';
import type { FaultPlanInput } from '../../stubs/hetzner/faults.ts';
import { startFleet, type TestFleet } from '../gateway/support/fleet.ts';
import { provisioningWorld, someRequest, type World, type WorldOptions } from './support.ts';
import { type Cut, Tap } from './tap.ts';

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

type Request = ReturnType<typeof someRequest>;

/** One process's whole life: it begins, goes on with what it finds, and ends well, with a refusal, or by the cut. */
async function oneProcess(world: World, request: Request, cut?: Cut) {
  const tap = new Tap(cut);
  const known = (await world.readNode(request.nodeId)) !== undefined;
  const options = { signal: tap.signal };
  const outcome = await (known
    ? resumeNode(world.ports(tap), request.nodeId, options)
    : provisionNode(world.ports(tap), request, options));
  return { outcome, trace: tap.trace };
}

async function traceOf(options: WorldOptions): Promise<readonly string[]> {
  await using world = await provisioningWorld(fleet, options);
  const { outcome, trace } = await oneProcess(world, someRequest());
  expect(outcome.ok).toBe(options.nameTakenBy !== 'stranger');
  return trace;
}

/** Cuts a run, lets another process go on, and looks at everything that there is afterwards. */
async function cutAndResume(options: WorldOptions, cut: Cut) {
  await using world = await provisioningWorld(fleet, options);
  const request = someRequest();
  const first = await oneProcess(world, request, cut);
  await world.hostsSettled();
  let second = await oneProcess(world, request);
  if (options.nameTakenBy === 'stranger') {
    expect(second.outcome).toMatchObject({ ok: false, refusals: [{ code: 'server_name_taken' }] });
    expect(world.servers()).toEqual([{ name: request.name, nodeId: undefined }]);
    await world.remove(request.name);
    second = await oneProcess(world, request);
  }
  const node = await world.readNode(request.nodeId);
  return {
    cut: first.outcome.ok ? 'not cut' : first.outcome.refusals[0]?.code,
    outcome: second.outcome.ok ? second.outcome.state : second.outcome.refusals,
    servers: world.servers(),
    nodes: await world.nodesNamed(request.name),
    node: [node?.status, node?.provision_state, node?.server_id, node?.cpu_millis],
    expected: {
      cut: 'interrupted',
      outcome: 'enrolled',
      servers: [{ name: request.name, nodeId: request.nodeId }],
      nodes: 1,
      node: ['active', 'enrolled', world.stub.state().servers[0]?.id, 3_500],
    },
  };
}

/** A cut before and one after each of these operations. */
const around = (operations: readonly number[]): Cut[] =>
  operations.flatMap((at): Cut[] => [
    { at, when: 'before' },
    { at, when: 'after' },
  ]);

/** The operations from one on, of polls that repeat each other only the first: the undisturbed run is cut at them all. */
const distinctFrom = (trace: readonly string[], from: number): number[] =>
  [...trace.keys()].filter((at) => at >= from && (at === from || trace[at] !== trace[at - 1]));

/** Does the work for every cut; several at once, for each has a provider of its own. */
async function forEach(cuts: readonly Cut[], work: (cut: Cut) => Promise<unknown>): Promise<void> {
  const next = cuts.values();
  const worker = async () => {
    for (const cut of next) await work(cut);
  };
  await Promise.all(Array.from({ length: 6 }, worker));
}

function cutAtEach(trace: readonly string[], cuts: readonly Cut[], options: WorldOptions): Promise<void> {
  return forEach(cuts, async (cut) => {
    const { expected, ...seen } = await cutAndResume(options, cut);
    expect(seen, `cut ${cut.when} operation ${cut.at}, ${trace[cut.at]}`).toEqual(expected);
  });
}

/** Every operation of an undisturbed run: HTTP exchanges and appends. The workflow touches no file. */
const OPERATIONS = 23;

test(`each of ${OPERATIONS} operations, cut before and after it: resumed to one server, one node, enrolled`, async () => {
  const options = { enrols: 'when_awaited' } as const;
  const trace = await traceOf(options);
  console.log(`${trace.length} operations, ${trace.length * 2} crash points\n  ${trace.join('\n  ')}`);
  expect(trace).toHaveLength(OPERATIONS);
  await cutAtEach(trace, around([...trace.keys()]), options);
});

/** A fault strikes the create, and the process dies at any later moment too. */
const onCreate = (fault: FaultPlanInput[number]['fault']): WorldOptions => ({
  faults: [{ match: { method: 'POST', path: '/v1/servers' }, nth: 1, fault }],
});

describe.each<[string, WorldOptions]>([
  ['the agent enrols as soon as it boots, before its server is recorded', { enrols: 'at_boot' }],
  ['the answer to the create is lost', onCreate({ kind: 'lose_response' })],
  ['502 after the create was done', onCreate({ kind: 'handle_then_status' })],
  ['409: our own create of long ago was first', { nameTakenBy: 'ours' }],
  ["409: a stranger's server has the name", { nameTakenBy: 'stranger' }],
  ['the server is made but does not start', onCreate({ kind: 'action_error', command: 'start_server' })],
])('%s', (what, options) => {
  test('each operation from the create on, cut before and after it: resumed to one server, one node, enrolled', async () => {
    const trace = await traceOf(options);
    const cuts = around(distinctFrom(trace, trace.indexOf('POST /servers')));
    console.log(`${what}: ${cuts.length} crash points from the create on`);
    await cutAtEach(trace, cuts, options);
  });
});

test('--retry of a failed node, cut at each operation up to its new start: the old server goes, one new one enrols', async () => {
  const retryCut = async (cut?: Cut) => {
    await using world = await provisioningWorld(fleet, { enrols: 'when_awaited' });
    const { nodeId, ...request } = someRequest();
    await provisionNode(world.ports(undefined, { secretTtlMs: 1 }), { ...request, nodeId });
    const former = world.stub.state().servers[0]?.id;
    const tap = new Tap(cut);
    await retryNode(world.ports(tap), nodeId, { signal: tap.signal });
    const failed = (await world.readNode(nodeId))?.provision_state === 'failed';
    const outcome = await (failed ? retryNode : resumeNode)(world.ports(), nodeId);
    const [server, ...others] = world.stub.state().servers;
    expect(others).toEqual([]);
    expect(server?.id).not.toBe(former);
    expect(outcome).toMatchObject({ ok: true, state: 'enrolled' });
    expect(await world.readNode(nodeId)).toMatchObject({ server_id: server?.id });
    return tap.trace;
  };
  const trace = await retryCut();
  const upToTheStart = trace.slice(0, trace.indexOf('append retry_provisioning') + 1);
  expect(new Set(upToTheStart)).toEqual(
    new Set([
      'GET /servers/:id',
      'DELETE /servers/:id',
      'GET /actions',
      'GET /servers',
      'append record_server_deleted',
      'append retry_provisioning',
    ]),
  );
  const cuts = around(distinctFrom(upToTheStart, 0));
  console.log(`--retry: ${cuts.length} crash points up to the new start`);
  await forEach(cuts, retryCut);
});
