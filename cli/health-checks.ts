import { issuanceHeldUntil, MAX_CLOCK_SKEW_MS } from '../src/domain/certificate/issuance.ts';
import type { ProgramRow } from '../src/read/database.ts';
import type { Health } from '../src/read/health.ts';
import type { Failure } from './failure.ts';
import { duration, isoTime } from './output/format.ts';
import { checkPki } from './pki-check.ts';
import { checkLosses, checkSilence } from './silence-checks.ts';

/** One finding of `fleet doctor`. */
export interface Check {
  readonly check:
    | 'database'
    | 'projections'
    | 'log'
    | 'lock'
    | 'gateways'
    | 'gateway_pki'
    | 'scheduler'
    | 'silence'
    | 'losses'
    | 'clock_host'
    | 'clock_log';
  readonly status: 'pass' | 'warn' | 'fail';
  readonly detail: string;
}

/** A beacon that is older than this is no sign of life: gateways write theirs each second, schedulers at each pass. */
const BEACON_MAX_AGE_MS = 5_000;
/** A batch takes milliseconds; the session limits end one that stands still after 3 s. */
const LOCK_HELD_WARN_MS = 2_000;
/** From here on a clock is worth a look, long before certificates are refused. */
const CLOCK_WARN_MS = 5_000;

/** Judges what the database told. `nowMs` is the database's clock. */
export function checkHealth(health: Health, nowMs: number): Check[] {
  const alive = health.programs.filter((program) => isAlive(program, nowMs));
  const gateways = alive.filter(({ kind }) => kind === 'gateway');
  const schedulers = alive.filter(({ kind }) => kind === 'scheduler');
  return [
    {
      check: 'database',
      status: 'pass',
      detail: `PostgreSQL ${health.databaseVersion} as ${health.databaseUser}, ${health.roundTripMs} ms`,
    },
    checkProjections(health),
    { check: 'log', status: 'pass', detail: logDetail(health, nowMs) },
    checkLock(health),
    checkGateways(gateways),
    { check: 'gateway_pki', ...checkPki(gateways, nowMs) },
    checkScheduler(schedulers),
    { check: 'silence', ...checkSilence(schedulers.find(({ details }) => isLeader(details))) },
    { check: 'losses', ...checkLosses(health.heldLosses) },
    checkClock('clock_host', 'this host', health.clockAheadOfHostMs),
    // A log that is behind the clock is only quiet; one that is ahead of it was written by a clock that ran fast.
    checkLogClock(health),
  ];
}

/** The only finding where the database does not answer: everything else is asked of it. */
export function checkUnreachable({ message, remedy }: Pick<Failure, 'message' | 'remedy'>): Check {
  return { check: 'database', status: 'fail', detail: remedy === undefined ? message : `${message}: ${remedy}` };
}

function checkProjections({ definitionMatches, projectedPosition, head }: Health): Check {
  const check = 'projections';
  if (!definitionMatches) {
    return {
      check,
      status: 'fail',
      detail: 'built by another version of this program: run `pushleft-controller db migrate`',
    };
  }
  if (projectedPosition !== head.position) {
    const detail = `at position ${projectedPosition}, the log at ${head.position}: run \`pushleft-controller projections verify\``;
    return { check, status: 'fail', detail };
  }
  return { check, status: 'pass', detail: `at position ${projectedPosition}, of this program's definition` };
}

function logDetail({ head }: Health, nowMs: number): string {
  return head.position === 0 ? 'empty' : `position ${head.position}, ${duration(nowMs - head.at)} ago`;
}

function checkLock({ lock }: Health): Check {
  const holder = lock.find(({ granted }) => granted);
  const waiting = lock.filter(({ granted }) => !granted).length;
  if (holder === undefined) return { check: 'lock', status: 'pass', detail: 'free' };
  const heldMs = holder.transactionMs ?? 0;
  const detail = `held by ${holder.program} for ${heldMs} ms, ${waiting} waiting`;
  return { check: 'lock', status: heldMs > LOCK_HELD_WARN_MS ? 'warn' : 'pass', detail };
}

function checkGateways(alive: readonly ProgramRow[]): Check {
  if (alive.length === 0) {
    return { check: 'gateways', status: 'fail', detail: 'none is alive: start one with `pushleft-controller gateway`' };
  }
  return { check: 'gateways', status: 'pass', detail: alive.map(({ program }) => program).join(', ') };
}

function checkScheduler(alive: readonly ProgramRow[]): Check {
  const leader = alive.find(({ details }) => isLeader(details));
  if (leader !== undefined)
    return { check: 'scheduler', status: 'pass', detail: `${leader.program} leads, ${alive.length} alive` };
  const detail =
    alive.length === 0 ? 'none is alive: start one with `pushleft-controller scheduler`' : 'none leads yet';
  return { check: 'scheduler', status: alive.length === 0 ? 'fail' : 'warn', detail };
}

/** A program that says how often it writes its beacon may miss two of them. */
function isAlive({ beacon_at, details }: ProgramRow, nowMs: number): boolean {
  const interval =
    typeof details === 'object' && details !== null && 'interval_ms' in details ? details.interval_ms : 0;
  return nowMs - beacon_at <= Math.max(BEACON_MAX_AGE_MS, 3 * (typeof interval === 'number' ? interval : 0));
}

function isLeader(details: unknown): boolean {
  return typeof details === 'object' && details !== null && 'leader' in details && details.leader === true;
}

function checkClock(check: 'clock_host' | 'clock_log', what: string, aheadMs: number): Check {
  const apartMs = Math.abs(aheadMs);
  const detail =
    apartMs < 1_000
      ? `the database and ${what} agree`
      : `the database is ${duration(apartMs)} ${aheadMs > 0 ? 'ahead of' : 'behind'} ${what}`;
  if (apartMs > MAX_CLOCK_SKEW_MS) return { check, status: 'fail', detail: `${detail}: no certificate is issued` };
  return { check, status: apartMs > CLOCK_WARN_MS ? 'warn' : 'pass', detail };
}

function checkLogClock({ head, clockAheadOfLogMs }: Health): Check {
  const checked = checkClock('clock_log', 'the log', Math.min(0, clockAheadOfLogMs));
  const until = issuanceHeldUntil({ at: head.at, now: head.at + clockAheadOfLogMs });
  return until === undefined ? checked : { ...checked, detail: `${checked.detail} until ${isoTime(until)}` };
}
