import type { Reply } from '../../src/domain/decision.ts';

/** What a changing command did, or with --dry-run would do: `position` is null then. */
export interface Done {
  readonly dryRun: boolean;
  readonly events: readonly { readonly position: number | null; readonly type: string }[];
  readonly reply: Reply;
}

/** One line: what was done with the positions of its events, or that it was so already. */
export function outcomeLine({ dryRun, events }: Done, done: string, already: string): string {
  if (events.length === 0) return `${already}, nothing ${dryRun ? 'would be' : 'was'} appended`;
  const types = events.map(({ type, position }) => (position === null ? type : `${type} at ${position}`)).join(', ');
  return dryRun ? `would append ${types}: ${done}` : `${done} (${types})`;
}

/** The same for --json. */
export function outcomeJson({ dryRun, events }: Done): {
  dry_run: boolean;
  changed: boolean;
  events: Done['events'];
} {
  return { dry_run: dryRun, changed: events.length > 0, events };
}
