import { describeRefusal } from '../../src/domain/refusal.ts';
import type { SilentNode, SweepReport } from '../../src/scheduler/sweep.ts';
import type { ForecastNode, SweepByHand } from '../../src/scheduler/sweep-by-hand.ts';
import { duration } from './format.ts';

type Swept = SweepByHand['silent'][number];

/** What the sweep made of a silent node: a stable word for --json, and a sentence. */
interface Outcome {
  readonly code: string;
  readonly says: string;
}

/** Whoever leads by now decides; a sweep of a term that is over has decided nothing. */
const SUPERSEDED = 'term_superseded';

/** How much of a sweep was not decided: what failed, and what was refused because another replica leads by now. */
export function sweepFailures({ pools, nodes }: SweepReport): number {
  const superseded = [...pools.refused, ...nodes.refused].filter(({ refusal }) => refusal.code === SUPERSEDED);
  return pools.failed.length + nodes.failed.length + superseded.length;
}

function outcomeOf({ node, statusAfter }: Swept, { pools, nodes }: SweepReport): Outcome {
  const failed = nodes.failed.find(({ command }) => command.node_id === node.node_id);
  if (failed !== undefined) return { code: 'failed', says: `FAILED, ${String(failed.error)}` };
  const refused = nodes.refused.find(({ command }) => command.node_id === node.node_id);
  if (refused !== undefined) {
    const { message, remedy } = describeRefusal(refused.refusal);
    return { code: refused.refusal.code, says: `${message}; ${remedy}` };
  }
  if (pools.failed.some(({ command }) => command.pool === node.pool)) {
    return { code: 'not_judged', says: `left as it is, because its pool could not be judged` };
  }
  if (statusAfter === node.status) return { code: 'unchanged', says: `stays ${node.status}` };
  return statusAfter === 'lost'
    ? { code: 'lost', says: `given up, see \`fleet reclaim show ${node.name}\`` }
    : { code: `became_${statusAfter}`, says: `is ${statusAfter} now` };
}

/** A sweep, a line a silent node. */
export function sweepLines({ silent, report, events }: SweepByHand): string[] {
  const nodes = silent.map((one) => `${silence(one.node)}: ${outcomeOf(one, report).says}`);
  const pools = report.pools.failed.map(
    ({ command, error }) => `pool ${command.pool} could not be judged: ${String(error)}`,
  );
  const appended = events.map(({ type, position }) => `${type} at ${position}`);
  return [
    ...(nodes.length === 0 ? ['no node is silent'] : nodes),
    ...pools,
    ...(appended.length === 0 ? [] : [`appended ${appended.join(', ')}`]),
  ];
}

/** The same for --json. */
export function sweepJson({ silent, report, events }: SweepByHand) {
  return {
    changed: events.length > 0,
    failed: sweepFailures(report),
    nodes: silent.map((one) => ({ ...nodeJson(one.node), outcome: outcomeOf(one, report).code })),
    events: events.map(({ position, type }) => ({ position, type })),
  };
}

function silence({ name, silent_ms }: SilentNode): string {
  return `${name} has been silent for ${duration(silent_ms)}`;
}

function nodeJson({ node_id, name, pool, status, silent_ms }: SilentNode) {
  return { node_id, name, pool, status, silent_ms };
}

/** What a sweep would decide about a silent node. */
export function forecastLine({ node, forecast }: ForecastNode): string {
  const silent = silence(node);
  if (forecast === undefined) return `${silent}: stays ${node.status}`;
  if (!forecast.ok) return `${silent}: ${describeRefusal(forecast.refusal).message}`;
  return forecast.wouldAppend.length === 0
    ? `${silent}: stays ${node.status}`
    : `${silent}: would append ${forecast.wouldAppend.join(', ')}`;
}

/** The same for --json. */
export function forecastJson({ node, forecast }: ForecastNode) {
  return {
    ...nodeJson(node),
    outcome: forecast?.ok === false ? forecast.refusal.code : 'forecast',
    events: forecast?.ok === true ? forecast.wouldAppend : [],
  };
}
