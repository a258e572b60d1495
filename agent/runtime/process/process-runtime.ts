import { describeError } from '../../log.ts';
import { diskFs, type StateFs } from '../../state-fs.ts';
import type { Time } from '../../time.ts';
import { findFreePort, isFreePort } from '../free-port.ts';
import { labelsOf, refuseForeign, refuseSuperseded, specSha256 } from '../labels.ts';
import type { Ensured, Runtime, Tended, WorkloadLabels, WorkloadRef, WorkloadSpec, WorkloadState } from '../runtime.ts';
import { launch } from './launch.ts';
import { isRunning } from './process-identity.ts';
import { type WorkloadRecord, WorkloadRecords } from './records.ts';
import { stopWorkload } from './stop.ts';

/** A workload that makes way for another of the same name has this long to end by itself. */
const REPLACE_GRACE_MS = 5_000;

/** A wrapper that has neither begun nor ended by then is started anew. */
const BEGIN_DEADLINE_MS = 5_000;

/** What the process runtime needs. */
export interface ProcessRuntimeDependencies {
  readonly stateDir: string;
  readonly nodeId: string;
  /** The address that workloads are reached at. */
  readonly address: () => Promise<string>;
  readonly time: Time;
  /** The disk, unless a test cuts it off. */
  readonly fs?: StateFs;
}

/**
 * Runs workloads as plain processes of the agent's user, each in a group and session of its own. The image is not used. Limits are those
 * that any process may set for itself: see docs/runtimes.md for what they do not hold.
 */
export class ProcessRuntime implements Runtime {
  readonly #deps: ProcessRuntimeDependencies;
  readonly #fs: StateFs;
  readonly #records: WorkloadRecords;

  constructor(deps: ProcessRuntimeDependencies) {
    this.#deps = deps;
    this.#fs = deps.fs ?? diskFs;
    this.#records = new WorkloadRecords(this.#fs, deps.stateDir);
  }

  async ensure(spec: WorkloadSpec, signal: AbortSignal): Promise<Ensured> {
    const { nodeId, time } = this.#deps;
    const all = await this.#records.list();
    const present = await this.#records.read(spec.id);
    if (present !== undefined) refuseForeign(spec, present.labels, nodeId);
    refuseSuperseded(
      spec,
      all.filter((record) => record.labels.node_id === nodeId).map(({ labels }) => labels),
    );
    if (present !== undefined && (await this.#stands(spec, present))) return { port: present.port, found: true };
    // Also when its leader has ended: members may have stayed.
    if (present !== undefined) {
      await stopWorkload(present.leader, this.#records.home(spec.id), REPLACE_GRACE_MS, time, signal);
    }
    signal.throwIfAborted();
    const port = spec.listens ? await this.#findPort(spec, all) : null;
    await this.#start(spec, port, present !== undefined);
    return { port, found: false };
  }

  async look(id: string): Promise<WorkloadState> {
    const record = await this.#records.read(id);
    if (record === undefined) return { kind: 'absent' };
    // In this order: a command that ends in between is seen to have ended.
    const runs = record.leader !== null && isRunning(record.leader);
    const code = await this.#records.exitCode(id);
    return runs && code === undefined ? { kind: 'running' } : { kind: 'exited', code: code ?? null };
  }

  async remove(ref: WorkloadRef, graceMs: number, signal: AbortSignal): Promise<boolean> {
    const record = await this.#records.read(ref.id);
    if (record === undefined) {
      await this.#records.sweep(ref.id);
      return false;
    }
    refuseForeign(ref, record.labels, this.#deps.nodeId);
    await this.#settledState(ref.id);
    await stopWorkload(record.leader, this.#records.home(ref.id), graceMs, this.#deps.time, signal);
    await this.#records.discard(ref.id);
    return true;
  }

  async tend(signal: AbortSignal): Promise<Tended> {
    const restarted: string[] = [];
    const failed: { id: string; reason: string }[] = [];
    for (const record of await this.#records.list()) {
      const { id } = record.spec;
      if (record.labels.node_id !== this.#deps.nodeId || record.spec.run === 'once') continue;
      try {
        if (await this.#restart(record, signal)) restarted.push(id);
      } catch (error) {
        signal.throwIfAborted();
        failed.push({ id, reason: describeError(error) });
      }
    }
    return { restarted, failed };
  }

  async list(): Promise<readonly WorkloadLabels[]> {
    const records = await this.#records.list();
    return records.map(({ labels }) => labels).filter((labels) => labels.node_id === this.#deps.nodeId);
  }

  /** On its own port alone, which is where it is looked for. Answers false for one that runs. */
  async #restart({ spec, port, leader }: WorkloadRecord, signal: AbortSignal): Promise<boolean> {
    if ((await this.#settledState(spec.id)).kind === 'running') return false;
    await stopWorkload(leader, this.#records.home(spec.id), REPLACE_GRACE_MS, this.#deps.time, signal);
    if (port !== null && !(await isFreePort(await this.#deps.address(), port))) {
      throw new Error(`its port ${port} is in use by somebody else`);
    }
    await this.#start(spec, port, true);
    return true;
  }

  /** It is what it is to be, and runs, or has run where that is all it was to do. */
  async #stands(spec: WorkloadSpec, record: WorkloadRecord): Promise<boolean> {
    if (specSha256(record.spec) !== specSha256(spec)) return false;
    const state = await this.#settledState(spec.id);
    return state.kind === 'running' || (state.kind === 'exited' && state.code !== null && spec.run === 'once');
  }

  /**
   * A wrapper that was just told to begin, or that an earlier agent left waiting, begins or ends in a moment. Until then it neither counts as
   * running nor hears every signal.
   */
  async #settledState(id: string): Promise<WorkloadState> {
    const { time } = this.#deps;
    const endMs = time.nowMs() + BEGIN_DEADLINE_MS;
    for (;;) {
      const state = await this.look(id);
      if (state.kind !== 'running' || (await this.#records.hasBegun(id))) return state;
      if (time.nowMs() >= endMs) return { kind: 'exited', code: null };
      await time.pause(20);
    }
  }

  /**
   * Every step is on disk before the next: first the record, then a process that waits, then who that is, then its go. Whoever dies in
   * between leaves nothing that runs and is not on record, because what waits ends with the one it waits for.
   */
  async #start(spec: WorkloadSpec, port: number | null, hasFolder: boolean): Promise<void> {
    const { id, command, memoryMb } = spec;
    const labels = labelsOf(spec, this.#deps.nodeId);
    const record: WorkloadRecord = { labels, spec, port, leader: null };
    if (hasFolder) {
      await this.#records.replace(id, record);
      await this.#records.forgetOutcome(id);
    } else {
      await this.#records.create(id, record);
    }
    const variables = await this.#variables(spec, port);
    const { folder, home } = { folder: this.#records.folder(id), home: this.#records.home(id) };
    const waiting = await launch({ command, memoryMb, folder, home, variables });
    try {
      await this.#records.replace(id, { ...record, leader: waiting.leader });
    } catch (error) {
      waiting.abandon();
      throw error;
    }
    waiting.go();
  }

  async #variables({ id, keepsData }: WorkloadSpec, port: number | null): Promise<Record<string, string>> {
    const dataDir = `${this.#deps.stateDir}/data/databases/${id}`;
    if (keepsData) await this.#fs.makeDir(dataDir);
    return {
      INSTANCE_ID: id,
      ...(port === null ? {} : { PORT: String(port) }),
      ...(keepsData ? { DATA_DIR: dataDir } : {}),
    };
  }

  async #findPort(spec: WorkloadSpec, all: readonly WorkloadRecord[]): Promise<number> {
    const others = all.filter(({ labels }) => labels.instance_id !== spec.id);
    const own = all.find(({ labels }) => labels.instance_id === spec.id)?.port ?? undefined;
    const taken = new Set(others.flatMap(({ port }) => port ?? []));
    return findFreePort(await this.#deps.address(), taken, own);
  }
}
