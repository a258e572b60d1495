import { mkdir } from 'node:fs/promises';
import * as v from 'valibot';
import { JobFailed } from '../../job-runner.ts';
import { describeError } from '../../log.ts';
import type { Time } from '../../time.ts';
import { findFreePort } from '../free-port.ts';
import { notOwned, refuseForeign, refuseSuperseded } from '../labels.ts';
import {
  type Ensured,
  type Runtime,
  type Tended,
  UNDO_MS,
  type WorkloadLabels,
  type WorkloadRef,
  type WorkloadSpec,
  type WorkloadState,
} from '../runtime.ts';
import {
  Container,
  containerName,
  containerToCreate,
  type DockerLabels,
  isAsSpecified,
  ListedContainer,
  nodeLabel,
  readLabels,
  readPort,
} from './container.ts';
import { type DockerEngine, type EngineAnswer, expectStatus, messageOf } from './engine.ts';
import { ensureImage } from './images.ts';

/** A container that makes way for another of the same name has this long to end by itself. */
const REPLACE_GRACE_MS = 5_000;
/** How much longer than the grace period a stop may take. */
const STOP_SLACK_MS = 30_000;
/** A removal that the engine says is under way is over by then. */
const REMOVAL_DEADLINE_MS = 30_000;
const LOOK_MS = 100;

/** What the Docker runtime needs. */
export interface DockerRuntimeDependencies {
  readonly engine: DockerEngine;
  readonly stateDir: string;
  readonly nodeId: string;
  /** The address that workloads are reached at. */
  readonly address: () => Promise<string>;
  readonly time: Time;
}

/**
 * Runs workloads as containers, which the engine keeps and starts again; the labels on a container are all the record there is. What is looked up
 * by name is acted upon by its id, so that nothing else is met that took the name meanwhile.
 */
export class DockerRuntime implements Runtime {
  readonly #deps: DockerRuntimeDependencies;

  constructor(deps: DockerRuntimeDependencies) {
    this.#deps = deps;
  }

  async ensure(spec: WorkloadSpec, signal: AbortSignal): Promise<Ensured> {
    const listed = await this.#listLabels(signal);
    const present = await this.#inspect(containerName(spec.id), signal);
    if (present !== undefined) this.#refuseForeign(spec, present);
    refuseSuperseded(
      spec,
      listed.flatMap((labels) => readLabels(labels) ?? []),
    );
    if (present !== undefined && stands(present, spec)) return { port: readPort(present.Config.Labels), found: true };
    if (present !== undefined) await this.#discard(present.Id, REPLACE_GRACE_MS, signal);
    await ensureImage(this.#deps.engine, spec.image, signal);
    const port = spec.listens ? await this.#findPort(listed) : null;
    try {
      await this.#create(spec, port, signal);
    } catch (error) {
      await this.#takeBack(spec, error);
      throw error;
    }
    return { port, found: false };
  }

  async look(id: string, signal: AbortSignal): Promise<WorkloadState> {
    const container = await this.#inspect(containerName(id), signal);
    if (container === undefined) return { kind: 'absent' };
    const { Status, Running, Restarting, ExitCode } = container.State;
    if (Running && !Restarting) return { kind: 'running' };
    // One that was never started has the exit code 0 too.
    return { kind: 'exited', code: Status === 'exited' || Restarting ? ExitCode : null };
  }

  async remove(ref: WorkloadRef, graceMs: number, signal: AbortSignal): Promise<boolean> {
    const container = await this.#inspect(containerName(ref.id), signal);
    if (container === undefined) return false;
    this.#refuseForeign(ref, container);
    await this.#discard(container.Id, graceMs, signal);
    return true;
  }

  /** The engine has its own eye on them. */
  async tend(): Promise<Tended> {
    return { restarted: [], failed: [] };
  }

  async list(): Promise<readonly WorkloadLabels[]> {
    const listed = await this.#listLabels(new AbortController().signal);
    return listed.flatMap((labels) => readLabels(labels) ?? []);
  }

  async #create(spec: WorkloadSpec, port: number | null, signal: AbortSignal): Promise<void> {
    const { engine, nodeId, stateDir } = this.#deps;
    const dataDir = `${stateDir}/data/databases/${spec.id}`;
    if (spec.keepsData) await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const path = `/containers/create?name=${containerName(spec.id)}`;
    const body = containerToCreate(spec, nodeId, port, dataDir);
    const created = await engine.call({ method: 'POST', path, body, signal });
    if (created.status === 409) await this.#refuseForeignHolder(spec, signal);
    const { Id } = v.parse(Created, expectStatus(created, 'create the container', 201).body);
    const started = await engine.call({ method: 'POST', path: `/containers/${Id}/start`, signal });
    if (started.status === 204 || started.status === 304) return;
    throw new JobFailed('not_ready', `it could not be started: ${messageOf(started)}`);
  }

  /** What was created and not started, or was created while nobody waited for the answer any more. */
  async #takeBack(spec: WorkloadSpec, reason: unknown): Promise<void> {
    if (reason instanceof JobFailed && reason.code === 'not_owned') return;
    try {
      await this.remove(spec, 0, AbortSignal.timeout(UNDO_MS.deadline));
    } catch (error) {
      const message = `${spec.id} could not be removed again after: ${describeError(reason)}`;
      throw new Error(message, { cause: error });
    }
  }

  /** Somebody has taken the name since it was looked for; one of our own is an earlier request's, whose sender was cut off. */
  async #refuseForeignHolder(spec: WorkloadSpec, signal: AbortSignal): Promise<void> {
    const holder = await this.#inspect(containerName(spec.id), signal);
    if (holder !== undefined) this.#refuseForeign(spec, holder);
  }

  #refuseForeign(ref: WorkloadRef, { Config }: Container): void {
    const labels = readLabels(Config.Labels);
    if (labels === undefined) throw notOwned(ref.id, 'does not carry our labels');
    refuseForeign(ref, labels, this.#deps.nodeId);
  }

  async #inspect(idOrName: string, signal: AbortSignal): Promise<Container | undefined> {
    const answer = await this.#deps.engine.call({ method: 'GET', path: `/containers/${idOrName}/json`, signal });
    if (expectStatus(answer, 'look for the container', 200, 404).status === 404) return undefined;
    return v.parse(Container, answer.body);
  }

  async #listLabels(signal: AbortSignal): Promise<readonly DockerLabels[]> {
    const filters = JSON.stringify({ label: [nodeLabel(this.#deps.nodeId)] });
    const path = `/containers/json?all=true&filters=${encodeURIComponent(filters)}`;
    const answer = expectStatus(await this.#deps.engine.call({ method: 'GET', path, signal }), 'list containers', 200);
    return v.parse(v.array(ListedContainer), answer.body).map(({ Labels }) => Labels);
  }

  /** Stops and removes a container. That it has stopped already, is gone, or is being removed are all the same end. */
  async #discard(id: string, graceMs: number, signal: AbortSignal): Promise<void> {
    const { engine } = this.#deps;
    const seconds = Math.ceil(graceMs / 1_000);
    const stop = { method: 'POST', path: `/containers/${id}/stop?t=${seconds}` } as const;
    const stopped = await engine.call({ ...stop, timeoutMs: graceMs + STOP_SLACK_MS, signal });
    if (expectStatus(stopped, 'stop the container', 204, 304, 404).status === 404) return;
    const path = `/containers/${id}?v=true&force=true`;
    const removed = await engine.call({ method: 'DELETE', path, timeoutMs: REMOVAL_DEADLINE_MS, signal });
    if (isUnderWay(removed)) return this.#awaitGone(id, signal);
    expectStatus(removed, 'remove the container', 204, 404);
  }

  async #awaitGone(id: string, signal: AbortSignal): Promise<void> {
    const { time } = this.#deps;
    const endMs = time.nowMs() + REMOVAL_DEADLINE_MS;
    while ((await this.#inspect(id, signal)) !== undefined) {
      if (time.nowMs() >= endMs) throw new Error(`the Docker engine does not come to an end of removing ${id}`);
      await time.pause(LOOK_MS, signal);
    }
  }

  async #findPort(listed: readonly DockerLabels[]): Promise<number> {
    return findFreePort(await this.#deps.address(), new Set(listed.flatMap((labels) => readPort(labels) ?? [])));
  }
}

const Created = v.object({ Id: v.string() });

/** It is what it is to be, and runs (or the engine is about to start it again), or has run where that is all it was to do. */
function stands({ State, Config }: Container, spec: WorkloadSpec): boolean {
  if (!isAsSpecified(Config.Labels, spec)) return false;
  return State.Running || State.Restarting || (spec.run === 'once' && State.Status === 'exited');
}

/** "removal of container … is already in progress": by whoever was cut off before. */
function isUnderWay({ status }: EngineAnswer): boolean {
  return status === 409;
}
