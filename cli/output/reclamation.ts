import type { ReclamationDetails, ReclamationSummary } from '../../src/read/reclamation.ts';
import { duration, isoTime, moment, orDash } from './format.ts';
import { pairLines, tableLines } from './table.ts';

/** One line: what a loss came to. */
export function reclamationLine(name: string, status: string, summary: ReclamationSummary): string {
  const parts = [
    `${summary.fenced_jobs} jobs fenced`,
    `${summary.lost_instances} instances lost`,
    `${summary.replacements_ready} replacements ready, ${summary.replacements_queued} queued`,
    `${summary.stranded_databases} databases stranded`,
  ];
  return `${name} is ${status}: ${parts.join('; ')}`;
}

/** Everything of one loss. */
export function reclamationLines(
  { node, reclamation, lost, strandedDatabases }: ReclamationDetails,
  summary: ReclamationSummary,
  nodeNames: ReadonlyMap<string, string>,
): string[] {
  const nodeOf = (id: string | null | undefined) => (id == null ? '-' : (nodeNames.get(id) ?? id));
  return [
    ...pairLines([
      ['node', `${node.name} (${node.node_id})`],
      ['status', node.status],
      ['taken at', moment(reclamation.at)],
      ['silent for', reclamation.silent_ms === null ? '-' : duration(reclamation.silent_ms)],
      ['jobs fenced', reclamation.fenced_jobs.map(({ job_id, kind }) => `${kind} ${job_id}`).join(', ') || 'none'],
      ['instances put back', reclamation.unplaced_instance_ids.join(', ') || 'none'],
      ['allocations released', String(reclamation.released_allocations)],
      [
        'databases stranded',
        strandedDatabases.map(({ name, held }) => (held ? name : `${name} (released)`)).join(', ') || 'none',
      ],
      ['left on the host', `${summary.uncleaned_instances} instances not said to be gone`],
    ]),
    '',
    ...(lost.length === 0
      ? ['no instances were lost']
      : tableLines(lost, [
          { heading: 'DEPLOYMENT', value: ({ deploymentName }) => deploymentName },
          {
            heading: 'LOST',
            value: ({ instance }) => `${instance.role}.${instance.slot} generation ${instance.generation}`,
          },
          {
            heading: 'REPLACED BY',
            value: ({ successor }) => (successor === undefined ? '-' : `generation ${successor.generation}`),
          },
          { heading: 'STATUS', value: ({ successor }) => orDash(successor?.status ?? null) },
          { heading: 'NODE', value: ({ successor }) => nodeOf(successor?.node_id) },
          { heading: 'READY', value: ({ successor }) => moment(successor?.ready_at ?? null) },
          { heading: 'GONE FROM HOST', value: ({ instance }) => moment(instance.cleaned_at) },
        ])),
  ];
}

/** The same for --json. */
export function reclamationJson(
  { node, reclamation, lost, strandedDatabases }: ReclamationDetails,
  summary: ReclamationSummary,
) {
  return {
    node_id: node.node_id,
    name: node.name,
    status: node.status,
    at: isoTime(reclamation.at),
    silent_ms: reclamation.silent_ms,
    ...summary,
    released_allocations: reclamation.released_allocations,
    jobs: reclamation.fenced_jobs,
    unplaced_instance_ids: reclamation.unplaced_instance_ids,
    instances: lost.map(({ instance, deploymentName, successor }) => ({
      instance_id: instance.instance_id,
      deployment: deploymentName,
      cleaned_at: isoTime(instance.cleaned_at),
      replaced_by: successor?.instance_id ?? null,
      replacement_status: successor?.status ?? null,
      replacement_node_id: successor?.node_id ?? null,
      replacement_ready_at: isoTime(successor?.ready_at ?? null),
    })),
    databases: strandedDatabases,
  };
}
