import type { EventLog } from '../log/event-log.ts';
import type { FoldState } from './fold-state.ts';

const PAGE = 5_000;

/** Where a fold stops: at a position, or after the last event that was recorded at or before a time (ms). */
export type Until = { readonly position: number } | { readonly at: number } | 'head';

/** Told of every page that was folded. */
export type Progress = (folded: { position: number; events: number }) => void;

/** Folds the log on from where the state stands. Reads page by page, each in a statement of its own. */
export async function foldLog(
  log: Pick<EventLog, 'read'>,
  state: FoldState,
  until: Until = 'head',
  progress?: Progress,
): Promise<void> {
  for (;;) {
    const limit =
      typeof until === 'object' && 'position' in until ? Math.min(PAGE, until.position - state.position) : PAGE;
    if (limit <= 0) return;
    const events = await log.read({ after: state.position, limit });
    for (const { event } of events) {
      if (typeof until === 'object' && 'at' in until && event.at > until.at) return;
      state.apply(event);
    }
    progress?.({ position: state.position, events: events.length });
    if (events.length < limit) return;
  }
}
