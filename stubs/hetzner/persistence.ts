import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import { writeFileAtomic } from '../../src/pki/atomic-file.ts';
import { type StubState, StubStateSchema } from './state.ts';

/** Where the state is kept between two runs. */
export interface StateStore {
  /** Resolves when the state as it is now, or a later one, is durable. */
  save(): Promise<void>;
}

/** Keeps nothing. */
export const FORGETFUL: StateStore = { save: () => Promise.resolve() };

/** Reads a state file; undefined when there is none. Throws, naming the file, when it is not one of ours. */
export function loadState(file: string): StubState | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return v.parse(StubStateSchema, JSON.parse(text));
  } catch (cause) {
    throw new Error(`${file} is not a state file of this stub`, { cause });
  }
}

/** Writes the state whole or not at all, 0600 (it holds user-data). Saves asked for during a write share the next one. */
export class StateFile implements StateStore {
  readonly #file: string;
  readonly #state: StubState;
  #writing: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(file: string, state: StubState) {
    this.#file = file;
    this.#state = state;
  }

  save(): Promise<void> {
    this.#next ??= this.#writeAfter(this.#writing);
    return this.#next;
  }

  async #writeAfter(earlier: Promise<void>): Promise<void> {
    await earlier.catch(() => {});
    this.#writing = this.#next ?? earlier;
    this.#next = undefined;
    await writeFileAtomic(this.#file, JSON.stringify(this.#state), 0o600);
  }
}
