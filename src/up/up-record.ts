import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { writePrivateFile } from './private-files.ts';
import { ProcessIdentity } from './process-identity.ts';

const Name = v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,62}$/));
const Port = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65_535));
/** Commands print these and everybody who may read the file sees them, so a login has no place in one. */
const PublicUrl = v.pipe(
  v.string(),
  v.url(),
  v.check((text) => new URL(text).username === '' && new URL(text).password === '', 'a URL here must not hold a login'),
);

/**
 * STATE_DIR/up.json: what `up` started, for CLI commands and for the next `up`. It holds no secret; those lie in 0600
 * files beside it (environment-files.ts).
 */
export const UpRecord = v.strictObject({
  version: v.literal(1),
  phase: v.picklist(['starting', 'ready', 'stopping', 'stopped']),
  /** Milliseconds since the epoch. */
  started_at: v.pipe(v.number(), v.integer()),
  /** The `up` itself; null once it has stopped. */
  up: v.nullable(ProcessIdentity),
  /** In the order of their start, the database aside, which has a record of its own (postgres.json). */
  processes: v.array(v.strictObject({ name: Name, process: ProcessIdentity, log_file: v.string() })),
  ports: v.record(Name, Port),
  urls: v.record(Name, PublicUrl),
  /** Files and folders worth knowing: certificates, logs, agents' folders. */
  paths: v.record(Name, v.string()),
});
export type UpRecord = v.InferOutput<typeof UpRecord>;

/** Undefined when `up` never ran here. Throws, naming the file, when it is damaged or of a newer version. */
export async function readUpRecord(stateDir: string): Promise<UpRecord | undefined> {
  const path = join(stateDir, 'up.json');
  try {
    return v.parse(UpRecord, JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new Error(`${path} cannot be read (damaged, or of another version)`, { cause: error });
  }
}

/**
 * The record of the `up` that runs. Changes are applied to memory at once and written one after the other, whole files
 * each; `update` answers when its own change is on disk.
 */
export class UpRecordFile {
  readonly #stateDir: string;
  #record: UpRecord;
  #written: Promise<void> = Promise.resolve();

  constructor(stateDir: string, record: UpRecord) {
    this.#stateDir = stateDir;
    this.#record = record;
  }

  get current(): UpRecord {
    return this.#record;
  }

  update(change: Partial<Omit<UpRecord, 'version'>>): Promise<void> {
    this.#record = v.parse(UpRecord, { ...this.#record, ...change });
    const content = `${JSON.stringify(this.#record, null, 2)}\n`;
    this.#written = this.#written
      .catch(() => {})
      .then(() => writePrivateFile(join(this.#stateDir, 'up.json'), content));
    return this.#written;
  }
}
