import { WHOLE_FLEET } from '../src/domain/pool/state.ts';
import type { ProgramRow } from '../src/read/database.ts';
import type { HeldScope } from '../src/read/health.ts';
import { duration, moment } from './output/format.ts';

/** Gateways are reached and say so every few seconds; one that ended without a word is waited for for half a minute. */
const STANDS_WARN_MS = 40_000;

interface Finding {
  readonly status: 'pass' | 'warn' | 'fail';
  readonly detail: string;
}

/** Whether silent nodes are given up by themselves. Many that fell silent together are a failure; a freeze is somebody's decision. */
export function checkLosses(held: readonly HeldScope[]): Finding {
  const pools = held.filter(({ scope }) => scope !== WHOLE_FLEET);
  const frozen = held.find(({ scope }) => scope === WHOLE_FLEET);
  const details = [
    ...pools.map(
      ({ scope, held_at }) =>
        `HELD: so many nodes of pool ${scope} fell silent together that none is given up since ${moment(held_at)}`,
    ),
    ...(frozen === undefined ? [] : [`FROZEN: no silent node is given up since ${moment(frozen.held_at)}`]),
  ];
  if (details.length === 0) return { status: 'pass', detail: 'silent nodes are given up by themselves' };
  const detail = `${details.join('; ')}: see \`pushleft-controller fleet loss status\``;
  return { status: pools.length > 0 ? 'fail' : 'warn', detail };
}

/** Whether silence is counted: not while the leader waits for a gateway that nobody reaches. */
export function checkSilence(leader: ProgramRow | undefined): Finding {
  if (leader === undefined) return { status: 'warn', detail: 'not counted: no scheduler leads' };
  const { details } = leader;
  const standsMs = numberOf(details, 'silence_stands_ms');
  if (standsMs < STANDS_WARN_MS) return { status: 'pass', detail: 'counted' };
  const waitsFor = namesOf(details, 'silence_waits_for');
  const whom = waitsFor.length === 0 ? 'there is no gateway' : `${waitsFor.join(', ')} is not reached by anybody`;
  return { status: 'warn', detail: `not counted for ${duration(standsMs)}, so no node is given up: ${whom}` };
}

function numberOf(details: unknown, key: string): number {
  const value = valueOf(details, key);
  return typeof value === 'number' ? value : 0;
}

function namesOf(details: unknown, key: string): string[] {
  const value = valueOf(details, key);
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : [];
}

function valueOf(details: unknown, key: string): unknown {
  return typeof details === 'object' && details !== null ? (details as Record<string, unknown>)[key] : undefined;
}
