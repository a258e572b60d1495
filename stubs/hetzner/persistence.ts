import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import * as v from 'valibot';
import { type StubState, StubStateSchema } from './state.ts';

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

/** Writes the state whole or not at all, for its owner's eyes only (it holds the servers' user-data). */
export function saveState(file: string, state: StubState): void {
  const temporary = `${file}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  writeSynced(temporary, JSON.stringify(state));
  renameSync(temporary, file);
  const directory = openSync(dirname(file), 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

function writeSynced(file: string, text: string): void {
  const descriptor = openSync(file, 'wx', 0o600);
  try {
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
