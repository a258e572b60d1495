import { randomUUID } from 'node:crypto';
import { queueJobCommand } from '../../src/commands/job.ts';
import { newJob } from '../../src/commands/new-job.ts';
import { AgentClient, jobOf } from '../gateway/support/client.ts';
import type { Benchmark } from './benchmark.ts';
import { operate, startGatewayFleet } from './gateway-fleet.ts';
import { median, ratePerSecond } from './rounds.ts';

const AGENTS = 64;

/** Jobs a second that are queued by an operator, leased and completed by agents through the gateway. */
export const leaseGrantedBenchmark: Benchmark = {
  name: 'lease-granted',
  what: `jobs/s queued, leased and completed by ${AGENTS} agents through the gateway`,
  async run({ postgres, quick }) {
    await using fleet = await startGatewayFleet(postgres, 'lease_granted', AGENTS);
    const clients = fleet.agents.map((agent) => ({
      nodeId: agent.nodeId,
      client: new AgentClient(fleet.agentUrl, agent),
    }));
    const idle = [...clients];
    const runJob = async () => {
      const agent = idle.pop();
      if (agent === undefined) throw new Error('more callers than agents');
      const target = { nodeId: agent.nodeId, pool: null };
      const job = newJob({ jobId: randomUUID(), kind: 'diagnose_host', ...target, payload: {} });
      if (!job.ok) throw new Error(job.problem);
      await operate(fleet.operator, queueJobCommand, job.value);
      const leased = jobOf(await agent.client.lease());
      const completed = await agent.client.complete(leased.id, leased.lease_token);
      if (completed.status !== 200) throw new Error(`a completion was answered ${completed.status}`);
      idle.push(agent);
    };
    const rates: number[] = [];
    await ratePerSecond(AGENTS, 1_000, runJob);
    for (let round = 0; round < (quick ? 1 : 5); round += 1) {
      rates.push(await ratePerSecond(AGENTS, quick ? 1_000 : 3_000, runJob));
    }
    for (const { client } of clients) client[Symbol.dispose]();
    return { ratio: null, figures: { jobs_per_s: median(rates) } };
  },
};
