import { mkdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { removeAbandonedData, removePostgres } from '../../../src/up/postgres/remove-postgres.ts';
import { startPostgres } from '../../../src/up/postgres/start-postgres.ts';
import { isRunning } from '../../../src/up/process-identity.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

describe('remove', () => {
  test('state directory without a PostgreSQL: nothing happens', async () => {
    await using folder = await temporaryDirectory();
    await removePostgres(folder.path);
  });

  test('running: ended, its data, socket and password gone, the rest of the state directory kept', async () => {
    await using folder = await temporaryDirectory();
    const server = await startPostgres({ stateDir: folder.path, durable: false });
    await removePostgres(folder.path);
    expect(isRunning(server.process)).toBe(false);
    for (const path of [server.dataDir, server.socketDir, join(folder.path, 'postgres-password')]) {
      await expect(stat(path)).rejects.toThrow('ENOENT');
    }
    expect((await stat(server.logFile)).isFile()).toBe(true);
  });
});

test.runIf(process.getuid?.() === 0)(
  'state directory deleted: its data are found under /var/lib and removed',
  async () => {
    await using folder = await temporaryDirectory();
    const [deleted, kept] = [join(folder.path, 'deleted'), join(folder.path, 'kept')];
    await Promise.all([deleted, kept].map((path) => mkdir(path, { mode: 0o700 })));
    const gone = await startPostgres({ stateDir: deleted, durable: false });
    const other = await startPostgres({ stateDir: kept, durable: false });
    await rm(deleted, { recursive: true });
    await removeAbandonedData(folder.path);
    expect(isRunning(gone.process)).toBe(false);
    await expect(stat(dirname(gone.dataDir))).rejects.toThrow('ENOENT');
    expect(isRunning(other.process)).toBe(true);
    await removePostgres(kept);
  },
);
