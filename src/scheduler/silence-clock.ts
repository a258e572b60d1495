import type pg from 'pg';
import { SCHEDULER } from '../domain/scheduler/state.ts';

/** A gateway as its beacon shows it: how often it was reached until now. Null: it does not say, so it never counts. */
export interface GatewaySight {
  readonly program: string;
  readonly reached: number | null;
}

/** What is known of a gateway: its counter, when that last moved (or when it was first seen), whether it has since the clock last did. */
interface Watched {
  readonly reached: number | null;
  readonly movedAtMs: number;
  readonly counts: boolean;
}

/** What a leader remembers from one pass to the next. Times are ms of its own monotonic clock. */
export interface ClockMemory {
  readonly advancedAtMs: number;
  readonly gateways: ReadonlyMap<string, Watched>;
}

/** By how much the clock of silence advances now, and the gateways that it waits for otherwise. */
export interface ClockStep {
  readonly memory: ClockMemory;
  readonly advanceMs: number;
  readonly waitsFor: readonly string[];
}

/** `mostMs`: the clock never advances by more in one step. */
export interface ClockLimits {
  readonly mostMs: number;
}

/** A gateway that has not counted for so long while another one did is taken for gone: its agents go to the others. */
const GONE_AFTER_MS = 30_000;

/**
 * One step of the clock of silence (DESIGN §5): it advances by the time since it last did, once every live gateway has been reached and
 * has written what it heard since. While one has not, there is no telling whether nodes are silent or only unheard, and the clock stands:
 * a gateway that is away, a listener that is dead, a flush that is stalled. A long time is counted as `mostMs`, because all that is known
 * of it is its end. The first step of a leader only looks.
 */
export function stepClock(
  memory: ClockMemory | undefined,
  sights: readonly GatewaySight[],
  nowMs: number,
  { mostMs }: ClockLimits,
): ClockStep {
  const gateways = new Map(
    sights.map((sight) => [sight.program, watch(memory?.gateways.get(sight.program), sight, nowMs)]),
  );
  if (memory === undefined) return { memory: { advancedAtMs: nowMs, gateways }, advanceMs: 0, waitsFor: [] };
  const anotherMoves = [...gateways.values()].some(({ counts, movedAtMs }) => counts && nowMs - movedAtMs <= mostMs);
  const isGone = ({ counts, movedAtMs }: Watched) => !counts && anotherMoves && nowMs - movedAtMs > GONE_AFTER_MS;
  const live = [...gateways].filter(([, watched]) => !isGone(watched));
  const waitsFor = live.filter(([, { counts }]) => !counts).map(([program]) => program);
  if (live.length === 0 || waitsFor.length > 0) return { memory: { ...memory, gateways }, advanceMs: 0, waitsFor };
  const since = new Map([...gateways].map(([program, watched]) => [program, { ...watched, counts: false }]));
  const advanceMs = Math.min(Math.max(0, nowMs - memory.advancedAtMs), mostMs);
  return { memory: { advancedAtMs: nowMs, gateways: since }, advanceMs, waitsFor };
}

/** A counter that begins anew (0) has not been reached yet; any other change says that it was. */
function watch(known: Watched | undefined, { reached }: GatewaySight, nowMs: number): Watched {
  if (known === undefined) return { reached, movedAtMs: nowMs, counts: false };
  const moved = reached !== null && reached > 0 && reached !== known.reached;
  return { reached, movedAtMs: moved ? nowMs : known.movedAtMs, counts: known.counts || moved };
}

const SIGHTS = `
  SELECT program,
         CASE WHEN jsonb_typeof(details -> 'reached') = 'number' THEN (details ->> 'reached')::numeric::float8 END AS reached
  FROM telemetry.programs WHERE kind = 'gateway' ORDER BY program`;

/**
 * Advances the clock, and with it everybody who was heard since it last did: silence begins when this step ends, so that nobody is called
 * silent for longer than in truth. They were heard just before the clock shows what it shows now: a millisecond tells them from those
 * who will be heard in the next step. A row that a gateway is writing is left to it.
 */
const ADVANCE = `
  WITH advanced AS (
    UPDATE telemetry.scheduler SET heard_ms = heard_ms + $3::bigint WHERE id = $1 AND term = $2 RETURNING heard_ms
  ), heard AS (
    SELECT l.node_id FROM telemetry.node_liveness l, advanced
    WHERE $3::bigint > 0 AND l.heard_ms = advanced.heard_ms - $3::bigint
    FOR UPDATE OF l SKIP LOCKED
  ), brought_along AS (
    UPDATE telemetry.node_liveness l SET heard_ms = l.heard_ms + $3::bigint - 1 FROM heard WHERE l.node_id = heard.node_id
  )
  SELECT heard_ms FROM advanced`;

/** A step as a leader's pass takes it; `inTerm` is false when the term is over or unknown to telemetry. `standsMs`: since it last advanced. */
export interface ClockPass {
  readonly inTerm: boolean;
  readonly standsMs: number;
  readonly waitsFor: readonly string[];
}

/** The clock of silence in the hands of one leader. */
export class SilenceClock {
  readonly #pool: pg.Pool;
  readonly #limits: ClockLimits;
  readonly #now: () => number;
  #term: number | undefined;
  #memory: ClockMemory | undefined;

  /** `now` is a monotonic clock in ms. */
  constructor(pool: pg.Pool, limits: ClockLimits, now: () => number = () => performance.now()) {
    this.#pool = pool;
    this.#limits = limits;
    this.#now = now;
  }

  /** Looks at the gateways and advances the clock by what they allow, in this term alone. A new term begins by looking. */
  async pass(term: number): Promise<ClockPass> {
    if (this.#term !== term) this.#memory = undefined;
    const { rows } = await this.#pool.query<GatewaySight>({ name: 'gateway_sights', text: SIGHTS });
    const nowMs = this.#now();
    const step = stepClock(this.#memory, rows, nowMs, this.#limits);
    const values = [SCHEDULER, term, Math.round(step.advanceMs)];
    const { rowCount } = await this.#pool.query({ name: 'advance_silence', text: ADVANCE, values });
    this.#term = term;
    this.#memory = step.memory;
    return { inTerm: rowCount === 1, standsMs: nowMs - step.memory.advancedAtMs, waitsFor: step.waitsFor };
  }
}
