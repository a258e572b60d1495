import { realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { endOrphan } from './orphan.ts';
import { placesOfRecord, readRecord } from './places.ts';

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
