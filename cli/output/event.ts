import type { EventRow } from '../../src/domain/event/state.ts';
import { isoTime, moment } from './format.ts';

/** What an event's line shows of its data: scalars that are short enough, the ids that the line names already left out. */
function dataText(data: unknown): string {
  if (typeof data !== 'object' || data === null) return '';
  return Object.entries(data)
    .filter(([name, value]) => name !== 'node_id' && name !== 'job_id' && isShort(value))
    .map(([name, value]) => `${name}=${isInstant(name, value) ? moment(value) : String(value)}`)
    .join(' ');
}

/** Times in events are ms; people read them as times. */
function isInstant(name: string, value: unknown): value is number {
  return typeof value === 'number' && (name.endsWith('_at') || name === 'not_before' || name === 'not_after');
}

function isShort(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'boolean' || (typeof value === 'string' && value.length <= 40);
}

/** One line an event: position, time, type, whom it is about, who did it, what. */
export function eventLine(event: EventRow): string {
  const about = event.job_id === null ? event.stream : `job-${event.job_id}`;
  const text = dataText(event.data);
  const line = [
    String(event.position).padStart(6),
    moment(event.at),
    event.type.padEnd(28),
    shortened(about).padEnd(14),
    `${event.actor_kind}:${event.actor_kind === 'agent' ? event.actor_id.slice(0, 8) : event.actor_id}`,
    text,
  ];
  return line.join('  ').trimEnd();
}

/** An entity's stream with its UUID cut to the eight digits that lists show. */
function shortened(stream: string): string {
  return stream.replace(/([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, '$1');
}

/** An event for --json. `data` is verbatim: times in it are ms. */
export function eventJson(event: EventRow) {
  const { position, at, type, stream, node_id, job_id, pool, actor_kind, actor_id, data } = event;
  return {
    position,
    at: isoTime(at),
    type,
    stream,
    node_id,
    job_id,
    pool,
    actor: { kind: actor_kind, id: actor_id },
    data,
  };
}
