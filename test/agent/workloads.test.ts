import { describe, expect, test } from 'vitest';
import type { CompleteRequest } from '../../src/protocol/jobs.ts';
import type { LeaseRequest } from '../../src/protocol/lease.ts';
import { waitFor } from '../support/wait-for.ts';
import { instanceId, node, SERVER } from './runtime/support/workloads.ts';
import { enrolledHost, type Host } from './support/host.ts';
import { grant, problem, type Reply } from './support/stub-gateway.ts';

const JOB_ID = '20000000-0000-4000-8000-000000000001';
const ENSURE = {
  instance_id: instanceId(),
  deployment_id: '50000000-0000-4000-8000-00000000000d',
  generation: 1,
  epoch: 1,
  run: 'service',
  image: 'example/web:1',
  command: node(SERVER),
  cpu_millis: 100,
  memory_mb: 64,
  listens: true,
  readiness_path: '/ready',
  timeout_seconds: 30,
};
const TEARDOWN = { instance_id: instanceId(), generation: 1, grace_seconds: 5 };

/** Answers leases with these replies, then holds them; writes down what it is sent. */
function answering(host: Host) {
  const seen = { leases: [] as LeaseRequest[], completions: [] as CompleteRequest[] };
  const replies: Reply[] = [];
  host.gateway.lease = ({ body }) => {
    seen.leases.push(body);
    return replies.shift() ?? 'hold';
  };
  host.gateway.complete = ({ body }) => {
    seen.completions.push(body);
    return { status: 200, body: {} };
  };
  /** Gives one job to an agent of its own, which it kills -9 once the result is in; answers the result. */
  const give = async (kind: string, payload: object): Promise<CompleteRequest> => {
    replies.push(grant(JOB_ID, 60_000, { kind, payload }));
    const before = seen.completions.length;
    await using agent = host.start('run');
    await waitFor(() => seen.completions.length > before, { what: 'the result is handed in', deadlineMs: 30_000 });
    const completion = seen.completions.at(-1);
    if (completion === undefined) throw new Error(agent.stderr());
    return completion;
  };
  return { seen, replies, give };
}

const portOf = (completion: CompleteRequest) =>
  (completion.result as { endpoint?: { port: number } }).endpoint?.port ?? 0;
const statusOf = (port: number) =>
  fetch(`http://127.0.0.1:${port}/`).then(
    ({ status }) => status,
    () => 'nobody',
  );

describe('pushleft-agent run with workloads', () => {
  test('an instance outlives an agent that is killed -9; the next one finds it, a third one tears it down', async () => {
    await using host = await enrolledHost({ PUSHLEFT_AGENT_ADVERTISE_ADDRESS: '127.0.0.1' });
    const { give, seen } = answering(host);
    const ready = await give('ensure_application', ENSURE);
    try {
      expect(ready).toMatchObject({ outcome: 'succeeded', result: { state: 'ready' } });
      expect(await statusOf(portOf(ready))).toBe(200);
      expect((await give('ensure_application', ENSURE)).result).toEqual(ready.result);
    } finally {
      expect((await give('teardown_application', TEARDOWN)).result).toEqual({ removed: true });
    }
    expect(await statusOf(portOf(ready))).toBe('nobody');
    expect(seen.leases[0]?.capabilities).toMatchObject({
      kinds: expect.arrayContaining(['build', 'ensure_application', 'ensure_database', 'teardown_application']),
      host: { runtime: 'process' },
    });
  });

  test('declared lost: removes what it is told to, tells what is gone, and gets no work', async () => {
    await using host = await enrolledHost();
    const { give, replies, seen } = answering(host);
    const ready = await give('ensure_application', ENSURE);
    const task = { kind: 'teardown_application', instance_id: instanceId(), generation: 1 };
    replies.push(problem(403, 'node_lost', { cleanup: [task] }));
    const before = seen.leases.length;
    await using agent = host.start('run');
    await agent.logged('instance of a lost node removed');
    await waitFor(() => seen.leases.length === before + 2, { what: 'the next lease is asked for' });
    expect(seen.leases.at(-1)?.cleaned).toEqual([instanceId()]);
    expect(await statusOf(portOf(ready))).toBe('nobody');
  });
});
