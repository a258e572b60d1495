import { certificateStatus, type NodeDetails, readNode } from '../../../src/read/node-details.ts';
import { describeConflict } from '../../../src/read/why.ts';
import { atFlag, limitFlag, nodeArgument } from '../../arguments.ts';
import { refusalFailure } from '../../failure.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { certificateJson, certificateLine } from '../../output/certificate.ts';
import { eventJson, eventLine } from '../../output/event.ts';
import { ago, moment, orDash } from '../../output/format.ts';
import { jobJson } from '../../output/job.ts';
import { momentJson, pastLines } from '../../output/moment-line.ts';
import { cpus, disk, memory, nodeJson } from '../../output/node.ts';
import { pairLines } from '../../output/table.ts';

/** `fleet show`: everything that is known of one node. */
export default class FleetShow extends OperatorCommand {
  static override summary = 'Show one node: capacity, host, certificate and its remaining life, jobs, timeline.';
  static override examples = [
    '<%= config.bin %> fleet show app-fsn1-7k2m',
    '<%= config.bin %> fleet show app-fsn1-7k2m --at 2026-03-01T12:00:00Z --json',
  ];
  static override args = { node: nodeArgument };
  static override flags = { at: atFlag, limit: limitFlag(30, 1_000) };

  async run() {
    const { args, flags } = await this.parse(FleetShow);
    const shown = await this.view(flags, (view) => readNode(view, args.node, flags.limit));
    if (!shown.ok) throw refusalFailure(shown.refusal);
    this.logLines(lines(shown.value));
    return json(shown.value);
  }
}

function lines(details: NodeDetails): string[] {
  const { node, jobs, timeline, live, lastSeenAt, liveness, moment: shown } = details;
  const host = [
    node.host_cpu_count === null ? null : `${node.host_cpu_count} CPUs`,
    node.host_memory_mb === null ? null : memory(node.host_memory_mb),
    node.host_kernel,
    node.host_docker_version === null ? null : `Docker ${node.host_docker_version}`,
  ].filter((fact) => fact !== null);
  const freeDisk = liveness?.data_disk_free_gb ?? null;
  return [
    ...pairLines([
      ['name', node.name],
      ['id', node.node_id],
      ['pool', node.pool],
      ['status', `${node.status}, ${node.schedulable ? 'schedulable' : 'not schedulable'}`],
      ['provisioning', node.provision_state + (node.failure_reason === null ? '' : ` (${node.failure_reason})`)],
      ['server', `${orDash(node.server_id)} (${node.server_type}, ${node.location ?? node.region}, ${node.image})`],
      [
        'addresses',
        [node.public_ipv4, node.public_ipv6, node.private_ipv4].filter((ip) => ip !== null).join(', ') || '-',
      ],
      ['capacity', `${cpus(node.cpu_millis)} CPU, ${memory(node.memory_mb)}, ${disk(node.disk_gb)}`],
      ['host', host.join(', ') || '-'],
      ['agent', orDash(node.agent_version)],
      ...(live
        ? [
            ['last seen', ago(lastSeenAt, shown.nowMs)] as const,
            ['data disk', freeDisk === null ? '-' : `${freeDisk} GB free`] as const,
          ]
        : []),
      ['requested', moment(node.requested_at)],
      ['enrolled', moment(node.enrolled_at)],
      ['admitted', moment(node.admitted_at)],
      ...certificatePairs(details),
      ...(node.conflict === null
        ? []
        : [['conflict', `${describeConflict(node.conflict)} (at ${moment(node.conflict.seen_at)})`] as const]),
    ]),
    ...(jobs.length === 0
      ? []
      : ['', 'last jobs', ...jobs.map((job) => `  ${job.job_id}  ${job.kind}  ${job.status}`)]),
    '',
    'timeline',
    ...timeline.map(eventLine),
    ...pastLines(shown, live),
  ];
}

/** The newest one; and what lets the node back in when none is in force. */
function certificatePairs({ node, certificates, moment: { nowMs } }: NodeDetails): (readonly [string, string])[] {
  const [newest] = certificates;
  if (newest === undefined) return [['certificate', '-']];
  const inForce = certificates.some((certificate) => certificateStatus(certificate, nowMs) === 'valid');
  const settled = inForce || node.status === 'retired' || node.status === 'provisioning';
  return [
    ['certificate', certificateLine(newest, nowMs)],
    ...(settled
      ? []
      : [['', `none is in force: \`pushleft-controller fleet reenroll ${node.name}\` lets the node back in`] as const]),
  ];
}

function json(details: NodeDetails) {
  const { nowMs } = details.moment;
  return {
    ...momentJson(details.moment),
    node: nodeJson(details, details.live),
    certificates: details.certificates.map((certificate) => ({
      ...certificateJson(certificate),
      status: certificateStatus(certificate, nowMs),
      remaining_seconds: Math.max(0, Math.floor((certificate.not_after - nowMs) / 1_000)),
    })),
    jobs: details.jobs.map(jobJson),
    timeline: details.timeline.map(eventJson),
  };
}
