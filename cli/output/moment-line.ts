import type { ViewMoment } from '../../src/read/fleet-view.ts';
import { isoTime, moment } from './format.ts';

/** Said below what is shown of the past, so that nobody takes it for the present. */
export function pastLines({ position, at }: ViewMoment, live: boolean): string[] {
  return live ? [] : ['', `as it was at position ${position}, ${moment(position === 0 ? null : at)}`];
}

/** Where the log stood, for --json: `--at <position>` shows the same again. */
export function momentJson({ position, at }: ViewMoment): { position: number; at: string | null } {
  return { position, at: isoTime(position === 0 ? null : at) };
}
