import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { provisionNode, resumeNode } from '../../src/provisioning/provision.ts';
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
  expect(outcome).toMatchObject({ ok: true, state: 'enrolled' });
  return trace;
}

/** Cuts a run, lets another process go on, and looks at everything that there is afterwards. */
async function cutAndResume(options: WorldOptions, cut: Cut) {
  await using world = await provisioningWorld(fleet, options);
  const request = someRequest();
  const first = await oneProcess(world, request, cut);
  await world.hostsSettled();
  const second = await oneProcess(world, request);
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

/** Cuts a run before and after each operation of the trace; several at once, since each has a provider of its own. */
async function cutAtEach(trace: readonly string[], from: number, options: WorldOptions): Promise<void> {
  const cuts = trace.flatMap((_, at): Cut[] =>
    at < from
      ? []
      : [
          { at, when: 'before' },
          { at, when: 'after' },
        ],
  );
  const next = cuts.values();
  const worker = async () => {
    for (const cut of next) {
      const { expected, ...seen } = await cutAndResume(options, cut);
      expect(seen, `cut ${cut.when} operation ${cut.at}, ${trace[cut.at]}`).toEqual(expected);
    }
  };
  await Promise.all(Array.from({ length: 6 }, worker));
}

/** Every operation of an undisturbed run: HTTP exchanges and appends. The workflow touches no file. */
const OPERATIONS = 23;

test(`each of ${OPERATIONS} operations, cut before and after it: resumed to one server, one node, enrolled`, async () => {
  const options = { enrols: 'when_awaited' } as const;
  const trace = await traceOf(options);
  console.log(`${trace.length} operations, ${trace.length * 2} crash points\n  ${trace.join('\n  ')}`);
  expect(trace).toHaveLength(OPERATIONS);
  await cutAtEach(trace, 0, options);
});

/** A fault strikes the create, and the process dies at any later moment too. */
const onCreate = (fault: FaultPlanInput[number]['fault']): WorldOptions => ({
  faults: [{ match: { method: 'POST', path: '/v1/servers' }, nth: 1, fault }],
});

describe.each<[string, WorldOptions]>([
  ['the agent enrols as soon as it boots, before its server is recorded', { enrols: 'at_boot' }],
  ['the answer to the create is lost', onCreate({ kind: 'lose_response' })],
  ['502 after the create was done', onCreate({ kind: 'handle_then_status' })],
  ['the server is made but does not start', onCreate({ kind: 'action_error', command: 'start_server' })],
])('%s', (what, options) => {
  test('each operation from the create on, cut before and after it: resumed to one server, one node, enrolled', async () => {
    const trace = await traceOf(options);
    const from = trace.indexOf('POST /servers');
    console.log(
      `${what}: ${trace.length - from} operations from the create on, ${(trace.length - from) * 2} crash points`,
    );
    await cutAtEach(trace, from, options);
  });
});
