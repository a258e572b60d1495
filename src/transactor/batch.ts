import type { TableName } from '../../projections/registry.ts';
import { isConnectionError, sqlState } from '../database/connect.ts';
import type { Body, DecisionTime } from '../domain/decision.ts';
import { seal } from '../log/codec.ts';
import type { LogHead, SealedEvent } from '../log/event-log.ts';
import type { Queryable } from '../log/postgres/reader.ts';
import { DEFINITION_DIGEST } from '../projector/digest.ts';
import { type CommandOutcome, type PendingCommand, UnavailableError } from './command.ts';
import { all, appendBatch, beginUnderLock, commit, type UnderLock } from './engine.ts';
import { recallOutcomes, rememberOutcomes, storeBodies } from './memory.ts';
import { RowView } from './row-view.ts';

/** What became of one command of a batch: its outcome, or the exception that it alone threw. */
export type Settled = { readonly outcome: CommandOutcome } | { readonly error: unknown };

/** Written into every event of this process. */
export interface Recorder {
  readonly programVersion: string;
  readonly epoch: number;
}

/** What a batch has decided so far. */
interface Progress {
  head: LogHead;
  readonly sealed: SealedEvent[];
  readonly bodies: Body[];
  readonly remembered: Map<string, CommandOutcome>;
}

/**
 * Decides commands one after the other in one transaction under the lock, each on the rows as those before it left them, and appends
 * all their events at once. A refusal or an exception spoils nothing for the others. Throws for database errors (nothing of the batch
 * took place then, unless the connection was lost at the commit: run it again, the memory knows).
 */
export async function runBatch(
  db: Queryable,
  commands: readonly PendingCommand[],
  recorder: Recorder,
): Promise<Settled[]> {
  const locked = await beginUnderLock(db);
  if (locked.definitionDigest !== DEFINITION_DIGEST) {
    throw new UnavailableError(
      'definition_mismatch',
      'the tables were built by another version of this program: run `db migrate`',
    );
  }
  const view = new RowView(db);
  const recalled = await readAhead(db, view, commands);
  const progress: Progress = { head: locked.head, sealed: [], bodies: [], remembered: new Map() };
  const settled: Settled[] = [];
  for (const pending of commands) {
    const known = recalled.get(pending.commandId) ?? progress.remembered.get(pending.commandId);
    settled.push(known === undefined ? await decideOne(pending, view, locked, progress, recorder) : { outcome: known });
  }
  await all([
    appendBatch(db, locked.head, progress.sealed),
    ...view.changes().map((statement) => db.query(statement)),
    storeBodies(db, progress.bodies),
    rememberOutcomes(db, progress.remembered),
    commit(db),
  ]);
  return settled;
}

async function readAhead(db: Queryable, view: RowView, commands: readonly PendingCommand[]) {
  const keys = new Map<TableName, string[]>();
  for (const { definition, command } of commands) {
    for (const [table, wanted] of Object.entries(definition.prefetch?.(command) ?? {})) {
      const gathered = keys.get(table as TableName);
      if (gathered === undefined) keys.set(table as TableName, [...wanted]);
      else gathered.push(...wanted);
    }
  }
  const [recalled] = await all([
    recallOutcomes(
      db,
      commands.map((pending) => pending.commandId),
    ),
    ...[...keys].map(([table, wanted]) => view.prefetch(table, wanted)),
  ]);
  return recalled;
}

async function decideOne(
  pending: PendingCommand,
  view: RowView,
  locked: UnderLock,
  progress: Progress,
  recorder: Recorder,
): Promise<Settled> {
  view.begin();
  const time: DecisionTime = { now: locked.nowMs, at: Math.max(locked.nowMs, locked.head.at) };
  try {
    const state = await pending.definition.load(view, pending.command);
    const decision = pending.definition.decide(pending.command, state, time);
    if ('refusal' in decision) return { outcome: { ok: false, refusal: decision.refusal } };
    const sealed = seal(progress.head, decision.events, metadataOf(pending, locked, recorder), time.at);
    for (const { event } of sealed) await view.fold(event);
    const last = sealed.at(-1);
    if (last !== undefined) progress.head = { position: last.event.position, hash: last.hash, at: time.at };
    progress.sealed.push(...sealed);
    progress.bodies.push(...decision.bodies);
    const events = sealed.map(({ event }) => ({ position: event.position, type: event.type }));
    const outcome: CommandOutcome = { ok: true, events, reply: decision.reply };
    if (events.length > 0) progress.remembered.set(pending.commandId, outcome);
    return { outcome };
  } catch (error) {
    view.takeBack();
    if (isConnectionError(error) || sqlState(error) !== undefined) throw error;
    return { error };
  }
}

function metadataOf(pending: PendingCommand, locked: UnderLock, recorder: Recorder) {
  return {
    actor: { ...pending.actor, database_user: locked.databaseUser, client_address: locked.clientAddress },
    command_id: pending.commandId,
    correlation_id: pending.correlationId,
    program_version: recorder.programVersion,
    epoch: recorder.epoch,
  };
}
