import canonicalize from 'canonicalize';
import * as v from 'valibot';
import { catalogue, isEventType, type NewEvent } from '../domain/event/catalogue.ts';
import { type EventDefinition, upcast } from '../domain/event/definition.ts';
import type { EventMetadata, RecordedEvent } from '../domain/event/recorded.ts';
import { chainHash } from './chain.ts';
import { LogFormatError, type LogHead, type SealedEvent } from './event-log.ts';

/** An event is at most this many bytes. */
export const MAX_EVENT_BYTES = 256 * 1024;
/** All events of one command are at most this many bytes together (EventStoreDB takes 1 MiB an append). */
export const MAX_COMMAND_BYTES = 900 * 1024;

const envelope = v.strictObject({
  at: v.number(),
  // Looked at by the type's own schema when it was written; a schema of records here would copy each.
  data: v.custom<Readonly<Record<string, unknown>>>((data) => typeof data === 'object' && data !== null),
  metadata: v.strictObject({
    actor: v.strictObject({
      kind: v.picklist(['operator', 'agent', 'gateway', 'scheduler']),
      id: v.string(),
      database_user: v.string(),
      client_address: v.nullable(v.string()),
    }),
    command_id: v.string(),
    correlation_id: v.string(),
    epoch: v.number(),
    program_version: v.string(),
  }),
  stream: v.string(),
  type: v.string(),
  version: v.number(),
});

/**
 * Writes a command's events as canonical JSON (RFC 8785), each chained to the one before. The data is checked against its schema here,
 * once, so that nothing else can get into the log. Throws {@link LogFormatError} for data outside its schema or too large: a defect
 * of the deciding code, never of a caller.
 */
export function seal(head: LogHead, events: readonly NewEvent[], metadata: EventMetadata, at: number): SealedEvent[] {
  let { position, hash } = head;
  let bytes = 0;
  return events.map(({ stream, event }) => {
    const definition: EventDefinition = catalogue[event.type];
    const data = v.safeParse(definition.data, event.data);
    if (!data.success) throw new LogFormatError(`${event.type}: ${v.summarize(data.issues)}`);
    const body = canonicalize({
      at,
      data: event.data,
      metadata,
      stream,
      type: event.type,
      version: definition.version,
    });
    if (body === undefined) throw new LogFormatError(`${event.type} has no JSON form`);
    const size = Buffer.byteLength(body);
    bytes += size;
    if (size > MAX_EVENT_BYTES) throw new LogFormatError(`${event.type} has ${size} bytes, at most ${MAX_EVENT_BYTES}`);
    if (bytes > MAX_COMMAND_BYTES) throw new LogFormatError(`one command's events exceed ${MAX_COMMAND_BYTES} bytes`);
    hash = chainHash(hash, body);
    position += 1;
    return { body, hash, event: { position, stream, at, metadata, ...event } };
  });
}

/** What every event's bytes hold, whatever its type: data that no schema has looked at yet. */
export type Envelope = v.InferOutput<typeof envelope>;

/** Reads stored bytes as far as every event is alike. Throws {@link LogFormatError} `damaged`. */
export function readEnvelope(position: number, body: string): Envelope {
  return asFormatError(position, () => {
    const read = v.safeParse(envelope, JSON.parse(body));
    if (!read.success) throw new Error(v.summarize(read.issues));
    return read.output;
  });
}

/** Brings an event to today's version. Throws {@link LogFormatError}; its kind is `newer_program` when only such a one knows the event. */
export function toRecordedEvent(position: number, read: Envelope): RecordedEvent {
  const { type, version, data, stream, at, metadata } = read;
  // Types are never taken out of the catalogue: one that is not in it was put there later.
  if (!isEventType(type)) throw newerProgram(position, `unknown event type ${type}`);
  const definition: EventDefinition = catalogue[type];
  if (version > definition.version) throw newerProgram(position, `version ${version} is newer than this program`);
  const today = asFormatError(position, () => upcast(definition, version, data));
  return { position, stream, at, metadata, type, data: today } as RecordedEvent;
}

/** Reads stored bytes back into an event of today's version. Throws {@link LogFormatError}. */
export function unseal(position: number, body: string): RecordedEvent {
  return toRecordedEvent(position, readEnvelope(position, body));
}

function newerProgram(position: number, reason: string): LogFormatError {
  return new LogFormatError(`position ${position}: ${reason}`, { kind: 'newer_program' });
}

function asFormatError<T>(position: number, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LogFormatError(`position ${position}: ${reason}`, { cause });
  }
}
