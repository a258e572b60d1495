import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder of the test's own (0700, real path): `await using folder = await temporaryDirectory()` removes it at the end. */
export async function temporaryDirectory(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(await realpath(tmpdir()), 'pushleft-test-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
