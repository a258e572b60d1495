import { hash, randomBytes, randomUUID } from 'node:crypto';
import {
  authorizeEnrollmentCommand,
  recordFirstUseCommand,
  recordIssuedCommand,
} from '../../../src/commands/certificate.ts';
import { completeJobCommand, leaseJobCommand, queueJobCommand } from '../../../src/commands/job.ts';
import { newJob } from '../../../src/commands/new-job.ts';
import {
  armSecretCommand,
  recordCapacityCommand,
  recordHostFactsCommand,
  requestNodeCommand,
} from '../../../src/commands/node.ts';
import type { Pool } from '../../../src/domain/fields.ts';
import { DOCTOR_CHECKS, type DoctorReport } from '../../../src/protocol/job-kinds/diagnose-host.ts';
import type { CommandDefinition, CommandOutcome } from '../../../src/transactor/command.ts';
import { Transactor } from '../../../src/transactor/transactor.ts';

/** Makes a fleet's events through the real commands, the way gateway, scheduler and operator do. */
export interface FleetMaker extends AsyncDisposable {
  requestNode(nodeId: string, name: string, pool?: Pool): Promise<void>;
  /** Requests the node, records its capacity and enrols it. */
  enrollNode(nodeId: string, name: string, pool?: Pool): Promise<void>;
  /** Queues a diagnose_host job for the node, leases it and completes it with {@link REPORT}. */
  runJob(jobId: string, nodeId: string): Promise<void>;
  /** Leases the node's next job and completes it with {@link REPORT}; false when none is queued. */
  completeQueued(nodeId: string): Promise<boolean>;
  give<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<Extract<CommandOutcome, { ok: true }>>;
}

/** What the host of {@link FleetMaker.runJob} found. */
export const REPORT: DoctorReport = {
  checks: DOCTOR_CHECKS.slice(0, 2).map((check) => ({
    check,
    status: 'pass',
    detail: `${check} is well`,
    duration_ms: 3,
  })),
  duration_ms: 5,
};

const PEM = `-----BEGIN CERTIFICATE-----\n${Buffer.from('not looked at by a projection').toString('base64')}\n-----END CERTIFICATE-----\n`;
const CAPACITY = { cpu_millis: 3_500, memory_mb: 7_168, disk_gb: 60, architecture: 'x86' } as const;
const FACTS = {
  cpu_count: 4,
  memory_mb: 8_192,
  kernel: '6.8.0-45-generic',
  docker_version: '29.0.1',
  agent_version: '0.1.0',
  bridge_netfilter: true,
  runtime: null,
  ingress: null,
};

/** Makes events in a migrated database. */
export function fleetMaker(url: string): FleetMaker {
  const transactor = new Transactor({ url, program: 'test', programVersion: '0.0.0' });
  const give: FleetMaker['give'] = async (definition, command) => {
    const outcome = await transactor.execute(definition, command, { actor: { kind: 'gateway', id: 'test' } });
    if (!outcome.ok) throw new Error(`${definition.name} was refused: ${outcome.refusal.code}`);
    return outcome;
  };
  const requestNode: FleetMaker['requestNode'] = async (nodeId, name, pool = 'application') => {
    await give(requestNodeCommand, {
      node_id: nodeId,
      name,
      pool,
      provider: 'hetzner',
      region: 'fsn1',
      server_type: 'cx32',
      image: 'ubuntu-24.04',
      placement_group: null,
    });
  };
  const completeQueued: FleetMaker['completeQueued'] = async (nodeId) => {
    const fingerprint = fingerprintOf(nodeId);
    const token = hash('sha256', randomUUID());
    const lease = { request_id: randomUUID(), kinds: ['diagnose_host'], token_sha256: token, lease_ms: 60_000 };
    const leased = await give(leaseJobCommand, { fingerprint, ...lease });
    const jobId = leased.reply['job_id'];
    if (typeof jobId !== 'string') return false;
    const result = JSON.stringify(REPORT);
    await give(completeJobCommand, {
      fingerprint,
      job_id: jobId,
      token_sha256: token,
      outcome: 'succeeded',
      result,
      result_sha256: hash('sha256', result),
      report: { kind: 'other' },
    });
    return true;
  };
  return {
    give,
    requestNode,
    async enrollNode(nodeId, name, pool) {
      await requestNode(nodeId, name, pool);
      await give(recordCapacityCommand, { node_id: nodeId, ...CAPACITY });
      const fingerprint = await enroll(give, nodeId);
      await give(recordFirstUseCommand, { fingerprint });
      await give(recordHostFactsCommand, { fingerprint, facts: FACTS });
    },
    async runJob(jobId, nodeId) {
      const job = newJob({ jobId, kind: 'diagnose_host', nodeId, pool: null, payload: {} });
      if (!job.ok) throw new Error(job.problem);
      await give(queueJobCommand, job.value);
      await completeQueued(nodeId);
    },
    completeQueued,
    [Symbol.asyncDispose]: () => transactor.close(),
  };
}

function fingerprintOf(nodeId: string): string {
  return hash('sha256', `fingerprint of ${nodeId}`);
}

async function enroll(give: FleetMaker['give'], nodeId: string): Promise<string> {
  const secret = hash('sha256', `secret of ${nodeId}`);
  const certificateId = randomBytes(8).toString('hex');
  const tbs = hash('sha256', certificateId);
  const fingerprint = fingerprintOf(nodeId);
  const issuer = hash('sha256', 'ca');
  await give(armSecretCommand, { node_id: nodeId, secret_sha256: secret, ttl_ms: 900_000, ca_sha256s: [issuer] });
  await give(authorizeEnrollmentCommand, {
    certificate_id: certificateId,
    node_id: nodeId,
    secret_sha256: secret,
    public_key_spki: Buffer.from('a public key').toString('base64'),
    tbs_sha256: tbs,
    issuer_ca_sha256: issuer,
    not_before: Date.now(),
    not_after: Date.now() + 86_400_000,
  });
  await give(recordIssuedCommand, {
    certificate_id: certificateId,
    node_id: nodeId,
    fingerprint,
    certificate_pem: PEM,
    tbs_sha256: tbs,
  });
  return fingerprint;
}
