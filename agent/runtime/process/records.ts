import * as v from 'valibot';
import { hasCode, replaceFile, type StateFs } from '../../state-fs.ts';
import { notOwned } from '../labels.ts';
import type { WorkloadLabels, WorkloadSpec } from '../runtime.ts';
import { ProcessIdentity } from './process-identity.ts';

const NAME = 'record.json';

const WorkloadRecord = v.strictObject({
  labels: v.strictObject({
    instance_id: v.string(),
    deployment_id: v.nullable(v.string()),
    generation: v.number(),
    epoch: v.number(),
    node_id: v.string(),
  }),
  /** All that it is started with, for when it has to be started again. */
  spec: v.strictObject({
    id: v.string(),
    deploymentId: v.nullable(v.string()),
    generation: v.number(),
    epoch: v.number(),
    run: v.picklist(['service', 'once']),
    image: v.string(),
    command: v.array(v.string()),
    cpuMillis: v.number(),
    memoryMb: v.number(),
    listens: v.boolean(),
    keepsData: v.boolean(),
  }),
  port: v.nullable(v.number()),
  /** The wrapper, which leads the workload's group; null before the first was started. */
  leader: v.nullable(ProcessIdentity),
});
/** What the agent knows of a workload when it starts anew. */
export interface WorkloadRecord {
  readonly labels: WorkloadLabels;
  readonly spec: WorkloadSpec;
  readonly port: number | null;
  readonly leader: ProcessIdentity | null;
}

/**
 * `<state>/instances/<id>/`: `record.json` (0600), `begun` and `exit` once the command has, `output.log`, `home/`. A folder appears and goes by one
 * rename, so one without a record is somebody else's. Every method may be cut at any step and run again.
 */
export class WorkloadRecords {
  readonly #fs: StateFs;
  readonly #root: string;

  constructor(fs: StateFs, stateDir: string) {
    this.#fs = fs;
    this.#root = `${stateDir}/instances`;
  }

  /** A workload's folder. */
  folder(id: string): string {
    return `${this.#root}/${id}`;
  }

  /** A workload's working directory and HOME. */
  home(id: string): string {
    return `${this.folder(id)}/home`;
  }

  /** Everything that has a record. */
  async list(): Promise<WorkloadRecord[]> {
    const records: WorkloadRecord[] = [];
    for (const name of await this.#fs.list(this.#root)) {
      const record = name.startsWith('.') ? undefined : parse(await this.#readText(name));
      if (record !== undefined) records.push(record);
    }
    return records;
  }

  /** A workload's record; undefined when there is no folder of its name. Throws JobFailed `not_owned` for a folder without one. */
  async read(id: string): Promise<WorkloadRecord | undefined> {
    if (!(await this.#fs.list(this.#root)).includes(id)) return undefined;
    const record = parse(await this.#readText(id));
    if (record === undefined) throw notOwned(id, 'has no record of ours');
    return record;
  }

  /** Makes the folder of a workload that has none, with its record. */
  async create(id: string, record: WorkloadRecord): Promise<void> {
    const staging = `${this.#root}/.new-${id}`;
    await this.#fs.remove(staging);
    await this.#fs.makeDir(`${staging}/home`);
    await replaceFile(this.#fs, staging, NAME, render(record));
    await this.#fs.rename(staging, this.folder(id));
    await this.#fs.syncDir(this.#root);
  }

  /** Puts a record in place of the one there is. */
  async replace(id: string, record: WorkloadRecord): Promise<void> {
    await replaceFile(this.#fs, this.folder(id), NAME, render(record));
  }

  /** How the command ended; undefined when it has not, or nobody saw it. */
  async exitCode(id: string): Promise<number | undefined> {
    const text = await this.#fs.readText(`${this.folder(id)}/exit`);
    return text !== undefined && /^\d{1,3}\n$/.test(text) ? Number(text) : undefined;
  }

  /** Whether the wrapper was told to begin. */
  async hasBegun(id: string): Promise<boolean> {
    return (await this.#fs.readText(`${this.folder(id)}/begun`)) !== undefined;
  }

  /** Forgets what became of an earlier command, before the next one begins. */
  async forgetOutcome(id: string): Promise<void> {
    await this.#fs.remove(`${this.folder(id)}/begun`);
    await this.#fs.remove(`${this.folder(id)}/exit`);
    await this.#fs.syncDir(this.folder(id));
  }

  /** Removes a workload's folder. */
  async discard(id: string): Promise<void> {
    await this.sweep(id);
    await this.#fs.rename(this.folder(id), `${this.#root}/.old-${id}`);
    await this.sweep(id);
  }

  /** Removes what a cut method left behind. */
  async sweep(id: string): Promise<void> {
    await this.#fs.remove(`${this.#root}/.new-${id}`);
    await this.#fs.remove(`${this.#root}/.old-${id}`);
  }

  /** Undefined too for a file that somebody put where a folder would be. */
  #readText(id: string): Promise<string | undefined> {
    return this.#fs.readText(`${this.folder(id)}/${NAME}`).catch((error: unknown) => {
      if (hasCode(error, 'ENOTDIR')) return undefined;
      throw error;
    });
  }
}

function render(record: WorkloadRecord): string {
  return `${JSON.stringify(record)}\n`;
}

function parse(text: string | undefined): WorkloadRecord | undefined {
  if (text === undefined) return undefined;
  try {
    const parsed = v.safeParse(WorkloadRecord, JSON.parse(text));
    return parsed.success ? parsed.output : undefined;
  } catch {
    return undefined;
  }
}
