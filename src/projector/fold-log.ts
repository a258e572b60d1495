import type { RecordedEvent } from '../domain/event/recorded.ts';
import type { PageRequest } from '../log/event-log.ts';
import type { FoldState } from './fold-state.ts';

const PAGE = 5_000;

/** Where a fold stops: at a position, or after the last event that was recorded at or before a time (ms). */
export type Until = { readonly position: number } | { readonly at: number } | 'head';

/** Told of every page that was folded. */
export type Progress = (folded: { position: number; events: number }) => void;

/** Where a fold's events come from: a log, or a reader that leaves out what folds do not look at. */
export interface FoldSource {
  read(page: PageRequest): Promise<readonly { readonly event: RecordedEvent }[]>;
}

/**
 * Folds the log on from where the state stands. Reads page by page, each in a statement of its own, and the next one while this one is
 * folded.
 */
export async function foldLog(
  log: FoldSource,
  state: FoldState,
  until: Until = 'head',
  progress?: Progress,
): Promise<void> {
  const end = typeof until === 'object' && 'position' in until ? until.position : Number.MAX_SAFE_INTEGER;
  const read = (after: number) => log.read({ after, limit: Math.min(PAGE, end - after) });
  let reading = state.position < end ? read(state.position) : undefined;
  while (reading !== undefined) {
    const events = await reading;
    const last = events.at(-1)?.event.position ?? end;
    reading = events.length === PAGE && last < end ? read(last) : undefined;
    // Whoever is to hear of a page that cannot be read hears of it when its turn comes, unless the fold fails before.
    reading?.catch(() => undefined);
    for (const { event } of events) {
      if (typeof until === 'object' && 'at' in until && event.at > until.at) return;
      state.apply(event);
    }
    progress?.({ position: state.position, events: events.length });
  }
}
