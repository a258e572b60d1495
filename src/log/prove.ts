import type { RecordedEvent } from '../domain/event/recorded.ts';
import { chainHash, eventId, GENESIS_HASH } from './chain.ts';
import { readEnvelope, toRecordedEvent } from './codec.ts';
import { LogFormatError } from './event-log.ts';

/** A point of the chain: the hash at a position. */
export interface ChainPoint {
  readonly position: number;
  readonly hash: string;
}

/** The point before the first event. */
export const GENESIS: ChainPoint = { position: 0, hash: GENESIS_HASH };

/** An event as somebody hands it over, to be proved: from the database with its columns, from an exported file with its id. */
export interface ClaimedRow {
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
  readonly hash: string;
  readonly body: string;
  readonly type?: string;
  readonly at?: number;
  readonly id?: string;
}

/** What is wrong with an event that cannot be as it was written. */
type Damage = 'missing' | 'hash_mismatch' | 'id_mismatch' | 'column_mismatch' | 'revision_mismatch' | 'unreadable';

/** What is wrong with a log that was compared with a point kept elsewhere. */
type CheckpointFault = 'checkpoint_mismatch' | 'ends_before_checkpoint' | 'begins_after_checkpoint';

/** The first thing in the log that cannot be as it was written, or that this program is too old to read. */
export interface LogFault {
  readonly position: number;
  readonly reason: Damage | CheckpointFault | 'cut_short' | 'newer_program';
}

/** How far the log was proved, and what broke it. `hash` is the chain's hash at `position`: to be compared with one kept elsewhere. */
export interface LogVerification extends ChainPoint {
  readonly fault: LogFault | undefined;
}

/** What an event proved to be: itself, one that only a newer program can read, or damaged. */
export type RowProof =
  | { readonly ok: true; readonly event: RecordedEvent }
  | { readonly ok: false; readonly reason: Damage | 'newer_program' };

/**
 * Recomputes the chain over the exact stored bytes, event by event, and compares everything that stands beside the bytes with them.
 * Begins after a point of the chain that is believed. From genesis, revisions have to count from 1; from elsewhere each stream's first
 * one has to be believed as well.
 */
class ChainProof {
  readonly #fromGenesis: boolean;
  readonly #revisions = new Map<string, number>();
  #end: ChainPoint;

  constructor(start: ChainPoint) {
    this.#end = start;
    this.#fromGenesis = start.position === 0;
  }

  /** How far the chain was proved: events of a newer program are proved like all others. */
  get end(): ChainPoint {
    return this.#end;
  }

  /** Proves the next event; moves {@link end} unless it is damaged. */
  prove(row: ClaimedRow): RowProof {
    const proof = this.#examine(row);
    if (proof.ok || proof.reason === 'newer_program') this.#end = { position: row.position, hash: row.hash };
    return proof;
  }

  #examine(row: ClaimedRow): RowProof {
    if (row.position !== this.#end.position + 1) return damaged('missing');
    if (row.hash !== chainHash(this.#end.hash, row.body)) return damaged('hash_mismatch');
    if (row.id !== undefined && row.id !== eventId(row.hash)) return damaged('id_mismatch');
    const read = readRow(row);
    if (!read.ok && read.reason !== 'newer_program') return read;
    const last = this.#revisions.get(row.stream) ?? (this.#fromGenesis ? 0 : row.revision - 1);
    if (row.revision !== last + 1) return damaged('revision_mismatch');
    this.#revisions.set(row.stream, row.revision);
    return read;
  }
}

function readRow(row: ClaimedRow): RowProof {
  try {
    const envelope = readEnvelope(row.position, row.body);
    const { stream, type, at } = envelope;
    if (stream !== row.stream || type !== (row.type ?? type) || at !== (row.at ?? at))
      return damaged('column_mismatch');
    return { ok: true, event: toRecordedEvent(row.position, envelope) };
  } catch (error) {
    if (error instanceof LogFormatError && error.kind === 'newer_program') return damaged('newer_program');
    return damaged('unreadable');
  }
}

function damaged(reason: Damage | 'newer_program'): RowProof {
  return { ok: false, reason };
}

/** What {@link proveRows} is to compare and to tell. */
export interface ProofOptions {
  /** Points of the chain that were kept elsewhere and are believed. */
  readonly checkpoints?: readonly ChainPoint[];
  /** Told each event that was proved and could be read. */
  readonly onEvent?: ((event: RecordedEvent) => void) | undefined;
  readonly onProgress?: ((position: number) => void) | undefined;
}

/**
 * Proves pages of events from `start` on and compares the chain with the checkpoints. An edited, removed or swapped event is named by
 * its position. A checkpoint that differs says that everything since the last one that agrees may have been written anew: only that far
 * is the log proved then. Of events from a newer program the first is named when nothing is wrong.
 */
export async function proveRows(
  pages: AsyncIterable<readonly ClaimedRow[]>,
  start: ChainPoint,
  { checkpoints = [], onEvent, onProgress }: ProofOptions = {},
): Promise<LogVerification> {
  const proof = new ChainProof(start);
  const awaited = checkpoints.toSorted((a, b) => a.position - b.position);
  const [first] = awaited;
  if (first !== undefined && first.position < start.position) {
    return { ...start, fault: { position: first.position, reason: 'begins_after_checkpoint' } };
  }
  let agreed = start;
  let newer: LogFault | undefined;
  const disagreement = (): LogVerification | undefined => {
    for (; awaited[0]?.position === proof.end.position; awaited.shift()) {
      const { position, hash } = awaited[0];
      if (hash !== proof.end.hash) return { ...agreed, fault: { position, reason: 'checkpoint_mismatch' } };
      agreed = awaited[0];
    }
    return undefined;
  };

  let differs = disagreement();
  if (differs !== undefined) return differs;
  for await (const page of pages) {
    for (const row of page) {
      const proved = proof.prove(row);
      if (proved.ok) onEvent?.(proved.event);
      else if (proved.reason === 'newer_program') newer ??= { position: row.position, reason: 'newer_program' };
      else return { ...proof.end, fault: { position: proof.end.position + 1, reason: proved.reason } };
      differs = disagreement();
      if (differs !== undefined) return differs;
    }
    onProgress?.(proof.end.position);
  }
  const { end } = proof;
  if (awaited.length > 0) return { ...end, fault: { position: end.position + 1, reason: 'ends_before_checkpoint' } };
  return { ...end, fault: newer };
}
