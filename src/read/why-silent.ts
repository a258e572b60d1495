import type { NodeDetails } from './node-details.ts';
import type { Hindrance } from './why.ts';

const CLI = 'pushleft-controller';

/** What silence has made of a node, or will make of it; empty for one that is heard. The first thing to look at first. */
export function silenceHindrances(details: NodeDetails): Hindrance[] {
  const { node } = details;
  if (node.status === 'lost') return [lost(details)];
  if (node.status === 'unhealthy') return [...keptBack(details), unhealthy(details)];
  return node.status === 'active' || node.status === 'draining' ? keptBack(details) : [];
}

function lost({ node: { name, reclamation } }: NodeDetails): Hindrance {
  const since = reclamation === null ? '' : ` at ${second(reclamation.at)}`;
  const stranded = reclamation?.stranded_database_ids.length ?? 0;
  const databases = stranded === 0 ? '' : `; ${stranded} databases are stranded on it`;
  return {
    code: 'lost',
    message: `the node was given up${since}${afterMs(reclamation?.silent_ms ?? null)}: it gets no work any more, even if it comes back${databases}`,
    remedy: `see what became of its work: \`${CLI} fleet reclaim show ${name}\`; then \`${CLI} fleet decommission ${name}\``,
  };
}

function unhealthy({ node, live, silentMs }: NodeDetails): Hindrance {
  const silent = live ? afterMs(silentMs) : '';
  return {
    code: 'unhealthy',
    message: `the node is unhealthy${silent}: it keeps what it has and gets nothing new`,
    remedy: node.mesh_coordinator
      ? 'its next request makes it well again; as a mesh coordinator it is never given up'
      : 'its next request makes it well again; one that stays silent is given up',
  };
}

/** Why a node would not be given up, however long it stays silent. */
function keptBack({ node: { pool }, losses }: NodeDetails): Hindrance[] {
  const { frozen_at } = losses;
  const held = losses.pools.find((one) => one.pool === pool)?.held_at ?? null;
  return [
    ...(held === null
      ? []
      : [
          {
            code: 'losses_held' as const,
            message: `so many nodes of pool ${pool} fell silent together that none is given up since ${second(held)}`,
            remedy: `find out what they have in common (\`${CLI} fleet loss status\`, docs/runbooks/mass-silence.md); \`${CLI} fleet loss release ${pool}\` gives them up`,
          },
        ]),
    ...(frozen_at === null
      ? []
      : [
          {
            code: 'losses_frozen' as const,
            message: `an operator has no silent node given up since ${second(frozen_at)}`,
            remedy: `\`${CLI} fleet loss thaw\` ends that`,
          },
        ]),
  ];
}

function afterMs(silentMs: number | null): string {
  return silentMs === null ? '' : ` after ${Math.floor(silentMs / 1_000)} s of silence`;
}

function second(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}
