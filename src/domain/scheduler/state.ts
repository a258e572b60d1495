/**
 * Which scheduler leads, in which term, and the clock of silence: the one row of `telemetry.scheduler`. `heard_ms` advances only while
 * every live gateway says that what it hears is written (DESIGN §5), so it measures how long a node could have been heard and was not.
 */
export interface SchedulerState {
  readonly id: string;
  readonly term: number;
  readonly holder: string;
  readonly heard_ms: number;
}

/** The key of the one row. */
export const SCHEDULER = 'fleet';
