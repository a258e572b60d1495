import { isConnectionError, sqlState } from '../database/connect.ts';
import type { Body, Decision, DecisionTime } from '../domain/decision.ts';
import { seal } from '../log/codec.ts';
import type { LogHead, LogWriter, SealedEvent } from '../log/event-log.ts';
import type { Queryable } from '../log/postgres/reader.ts';
import type { CommandOutcome, Decide, PendingCommand } from './command.ts';
import { all, beginUnderLock, commit, type UnderLock } from './engine.ts';
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

/** A command and its decision on what was loaded before anything of the batch was decided, if loading went well. */
interface Loaded {
  readonly pending: PendingCommand;
  readonly ahead: Decide | undefined;
}

/**
 * The connection was lost after COMMIT had been sent: the events of `commandIds` are in the log, all of them or none. Run the batch
 * again: the memory of commands knows.
 */
export class CommitUnclearError extends Error {
  override readonly name = 'CommitUnclearError';
  readonly commandIds: ReadonlySet<string>;
  constructor(commandIds: Iterable<string>, options: ErrorOptions) {
    super('the connection was lost before the commit was answered', options);
    this.commandIds = new Set(commandIds);
  }
}

/**
 * Decides commands one after the other in one transaction under the lock, each on the rows as those before it left them, and appends
 * all their events at once. A refusal or an exception spoils nothing for the others. Throws {@link CommitUnclearError}, and what the
 * database throws (nothing of the batch took place then).
 */
export async function runBatch(
  db: Queryable,
  log: LogWriter,
  commands: readonly PendingCommand[],
  recorder: Recorder,
): Promise<Settled[]> {
  const view = new RowView(db);
  const { locked, recalled, loaded } = await readAhead(db, log, view, commands);
  const progress: Progress = { head: locked.head, sealed: [], bodies: [], remembered: new Map() };
  const settled: Settled[] = [];
  for (const command of loaded) {
    const { commandId } = command.pending;
    const known = recalled.get(commandId) ?? progress.remembered.get(commandId);
    settled.push(known === undefined ? await decideOne(command, view, locked, progress, recorder) : { outcome: known });
  }
  const changes = view.changes();
  try {
    await all([
      log.append(locked.head, progress.sealed),
      ...changes.map((statement) => db.query(statement)),
      storeBodies(db, progress.bodies),
      rememberOutcomes(db, progress.remembered),
      commit(db),
    ]);
  } catch (cause) {
    throw isConnectionError(cause) ? new CommitUnclearError(progress.remembered.keys(), { cause }) : cause;
  }
  return settled;
}

/**
 * Takes the lock and loads every command's state at once, each as if it were the first of the batch: all commands' reads go out
 * together, and what they found is at hand when they are decided. The statements are on their way before the lock is granted, and the
 * server runs them after it.
 */
async function readAhead(db: Queryable, log: LogWriter, view: RowView, commands: readonly PendingCommand[]) {
  const ids = commands.map((pending) => pending.commandId);
  const [locked, recalled, loaded] = await all([
    beginUnderLock(db, log),
    recallOutcomes(db, ids),
    all(commands.map((pending) => loadAhead(view, pending))),
  ]);
  return { locked, recalled, loaded };
}

async function loadAhead(view: RowView, pending: PendingCommand): Promise<Loaded> {
  try {
    return { pending, ahead: await pending.load(view) };
  } catch (error) {
    if (spoilsTheBatch(error)) throw error;
    return { pending, ahead: undefined };
  }
}

/** After a database error the transaction can only be rolled back. */
function spoilsTheBatch(error: unknown): boolean {
  return isConnectionError(error) || sqlState(error) !== undefined;
}

async function decideOne(
  { pending, ahead }: Loaded,
  view: RowView,
  locked: UnderLock,
  progress: Progress,
  recorder: Recorder,
): Promise<Settled> {
  view.begin();
  const time: DecisionTime = { now: locked.nowMs, at: Math.max(locked.nowMs, locked.head.at) };
  try {
    const untouched = progress.sealed.length === 0 && ahead !== undefined;
    const decide = untouched ? ahead : await pending.load(view);
    const decision = decide(time);
    const decided = 'refusal' in decision ? (decision.record ?? []) : decision.events;
    const sealed = seal(progress.head, decided, metadataOf(pending, locked, recorder), time.at);
    for (const { event } of sealed) await view.fold(event);
    const last = sealed.at(-1);
    if (last !== undefined) progress.head = { position: last.event.position, hash: last.hash, at: time.at };
    progress.sealed.push(...sealed);
    if ('bodies' in decision) progress.bodies.push(...decision.bodies);
    const outcome = outcomeOf(decision, sealed);
    if (sealed.length > 0) progress.remembered.set(pending.commandId, outcome);
    return { outcome };
  } catch (error) {
    view.takeBack();
    if (spoilsTheBatch(error)) throw error;
    return { error };
  }
}

function outcomeOf(decision: Decision, sealed: readonly SealedEvent[]): CommandOutcome {
  const events = sealed.map(({ event }) => ({ position: event.position, type: event.type }));
  if (!('refusal' in decision)) return { ok: true, events, reply: decision.reply };
  const { refusal } = decision;
  return events.length === 0 ? { ok: false, refusal } : { ok: false, refusal, events };
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
