import type { Benchmark } from './benchmark.ts';
import { startChild } from './child.ts';
import { startGatewayFleet } from './gateway-fleet.ts';
import type { LoadOrder } from './load-child.ts';
import { compare } from './rounds.ts';

const CONNECTIONS = 64;

/** Authenticated lease requests a second that find no work, against a bare mTLS server; every process on its own, one load for both. */
export const leaseEmptyBenchmark: Benchmark = {
  name: 'lease-empty',
  what: `empty leases/s over mTLS at ${CONNECTIONS} connections, against bare node:https`,
  mustReach: 0.5,
  async run({ postgres, quick }) {
    await using fleet = await startGatewayFleet(postgres, 'lease_empty', CONNECTIONS);
    await using bare = await startChild('bare-server-child.ts', fleet.environment);
    await using load = await startChild('load-child.ts', {});
    const { agentUrl: bareUrl } = bare.ready as { agentUrl: string };
    const durationMs = quick ? 1_000 : 3_000;
    const rate = async (url: string) => {
      const order: LoadOrder = { url, agents: fleet.agents, durationMs };
      return ((await load.ask(order)) as { requestsPerSecond: number }).requestsPerSecond;
    };
    const { baseline, candidate, ratio } = await compare(
      { baseline: () => rate(bareUrl), candidate: () => rate(fleet.agentUrl) },
      quick ? 3 : 7,
    );
    return { ratio, figures: { leases_per_s: candidate, bare_requests_per_s: baseline } };
  },
};
