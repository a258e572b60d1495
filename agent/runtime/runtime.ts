import type { JobPayload } from '../../src/protocol/job-kinds/registry.ts';

/** What is to run on this host, however it runs it. */
export interface WorkloadSpec extends WorkloadRef {
  /** Null for what belongs to no deployment. */
  readonly deploymentId: string | null;
  readonly epoch: number;
  /** A service goes on until it is removed; `once` is over when it ends. */
  readonly run: JobPayload<'ensure_application'>['run'];
  readonly image: string;
  /** Word by word, never through a shell. */
  readonly command: readonly string[];
  readonly cpuMillis: number;
  readonly memoryMb: number;
  /** Whether it listens on a port, which the host chooses and tells it in PORT. */
  readonly listens: boolean;
  /** Whether it gets a folder (DATA_DIR) that outlives it and that no runtime removes. */
  readonly keepsData: boolean;
}

/** Names one workload: an instance's id, or a database's, and the generation that its labels have to say. */
export interface WorkloadRef {
  readonly id: string;
  readonly generation: number;
}

/** What a workload carries, so that whoever finds it knows whose it is. Snake case, because it is kept in files and labels. */
export interface WorkloadLabels {
  readonly instance_id: string;
  readonly deployment_id: string | null;
  readonly generation: number;
  readonly epoch: number;
  readonly node_id: string;
}

/** What a workload is doing. `exited` has no code when nobody saw it end (a power cut, a kill of everything). */
export type WorkloadState =
  | { readonly kind: 'absent' }
  | { readonly kind: 'running' }
  | { readonly kind: 'exited'; readonly code: number | null };

/**
 * What is taken back, because the lease was lost or nothing came of it, has this long to end by itself, and its removal this long in all: work that
 * was told to end has ten seconds.
 */
export const UNDO_MS = { grace: 3_000, deadline: 8_000 } as const;

/** What looking after services came to, by id. */
export interface Tended {
  readonly restarted: readonly string[];
  readonly failed: readonly { readonly id: string; readonly reason: string }[];
}

/** A workload that was started, or `found` standing. */
export interface Ensured {
  /** Null when it does not listen. */
  readonly port: number | null;
  readonly found: boolean;
}

/**
 * Runs workloads on this host. Every method may be cut off at any moment, by SIGKILL too, and be called again; what was started lives on
 * without the agent. One call at a time.
 */
export interface Runtime {
  /**
   * Starts a workload unless it stands already as it is to be (one that ran once and has ended stands too); a service that has ended is
   * started again. Answers as soon as it runs, which is not yet ready. Throws JobFailed: `not_owned` when something of its
   * name does not carry this host's labels, `superseded` when a later generation or epoch of it is there.
   */
  ensure(spec: WorkloadSpec, signal: AbortSignal): Promise<Ensured>;
  /** Says what a workload is doing. */
  look(id: string, signal: AbortSignal): Promise<WorkloadState>;
  /**
   * Tells a workload to end, kills what is left of it after `graceMs`, and removes it, never its data. Answers false when nothing was there.
   * Throws JobFailed `not_owned` for what does not carry these labels, and stops waiting when the signal is aborted.
   */
  remove(ref: WorkloadRef, graceMs: number, signal: AbortSignal): Promise<boolean>;
  /**
   * Starts services again that have ended by themselves, where the runtime does not do so at once; answers which, and what kept others from
   * it. Not to be called while one is ensured, whose end is to be seen.
   */
  tend(signal: AbortSignal): Promise<Tended>;
  /** Labels of all that is this host's, running or not. */
  list(): Promise<readonly WorkloadLabels[]>;
}
