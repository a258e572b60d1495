import { hash, randomUUID } from 'node:crypto';
import { IdentityStore } from '../../../agent/identity-store.ts';
import { diskFs } from '../../../agent/state-fs.ts';
import { queueJobCommand } from '../../../src/commands/job.ts';
import type { Host, ProgramFleet } from '../../e2e/support/program-fleet.ts';
import { AgentClient, jobOf } from '../../gateway/support/client.ts';

/** Leases a job in the name of a host whose agent does not run, with the identity on its disk. */
export async function leaseAs(fleet: ProgramFleet, host: Host): Promise<{ jobId: string; token: string }> {
  const payload = '{}';
  await fleet.give(queueJobCommand, {
    job_id: randomUUID(),
    kind: 'diagnose_host',
    node_id: host.nodeId,
    pool: null,
    org_id: null,
    payload,
    payload_sha256: hash('sha256', payload),
    max_attempts: 3,
  });
  using client = await clientOf(fleet, host);
  const { id, lease_token } = jobOf(await client.lease());
  return { jobId: id, token: lease_token };
}

/** A client with the identity on a host's disk. */
export async function clientOf(fleet: ProgramFleet, { stateDir }: Host): Promise<AgentClient> {
  const identity = await new IdentityStore(diskFs, stateDir).current();
  if (identity === undefined) throw new Error('the host has no identity');
  const { caPem: ca, certificatePem: cert, keyPem: key } = identity;
  return new AgentClient(`https://127.0.0.1:${fleet.agentsEntrance.port}`, { ca, cert, key });
}
