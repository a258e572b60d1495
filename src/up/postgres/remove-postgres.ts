import { readdir, readFile, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { endOrphan } from './orphan.ts';
import { BACKREFERENCE, exists, placesOfRecord, readRecord, SHARED_DIR } from './places.ts';

/**
 * Ends the PostgreSQL of a state directory, should it run, and deletes its data wherever they lie. What else the state
 * directory holds stays. Does nothing where there never was one.
 */
export async function removePostgres(stateDir: string, log: (line: string) => void = () => {}): Promise<void> {
  const record = await readRecord(await realpath(stateDir));
  if (record === undefined) return;
  const places = placesOfRecord(record);
  await endOrphan(places, record, log);
  await rm(places.socketDir, { recursive: true, force: true });
  await rm(places.home, { recursive: true, force: true });
  await rm(places.passwordFile, { force: true });
  await rm(join(record.state_dir, 'postgres.json'), { force: true });
}

/**
 * Removes the databases that root's fleets left under /var/lib when their state directories were deleted. Only those whose
 * state directory's path begins with `stateDirPrefix`: a folder that is missing may also be one that is not mounted.
 */
export async function removeAbandonedData(stateDirPrefix: string): Promise<void> {
  for (const name of await readdir(SHARED_DIR)) {
    if (!/^pushleft-[0-9a-f]{16}$/.test(name)) continue;
    const home = join(SHARED_DIR, name);
    const stateDir = await readFile(join(home, BACKREFERENCE), 'utf8').catch(() => undefined);
    if (stateDir === undefined || !stateDir.startsWith(stateDirPrefix) || (await exists(stateDir))) continue;
    await endOrphan(
      placesOfRecord({ state_dir: stateDir, home, socket_dir: join(home, 'socket') }),
      undefined,
      () => {},
    );
    await rm(home, { recursive: true, force: true });
  }
}
