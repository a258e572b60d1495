import { isConnectionError } from '../src/database/connect.ts';
import { isRunning } from '../src/up/process-identity.ts';
import { readUpRecord } from '../src/up/up-record.ts';
import { EXIT } from './exit-code.ts';
import { Failure } from './failure.ts';

/**
 * The failure of a local fleet whose database does not answer although its `up` runs: "start a fleet" would lead in a circle, since `up`
 * says that one runs. Undefined for any other error, and where no `up` runs that had started its database.
 */
export async function deadDatabase(fault: unknown, stateDir: string | undefined): Promise<Failure | undefined> {
  const cause = fault instanceof Error ? fault.cause : undefined;
  if (stateDir === undefined || !(isConnectionError(fault) || isConnectionError(cause))) return undefined;
  const record = await readUpRecord(stateDir).catch(() => undefined);
  if (record?.up == null || record.phase !== 'ready' || !isRunning(record.up)) return undefined;
  return new Failure(
    EXIT.unavailable,
    'database',
    `the database of the fleet in ${stateDir} does not answer although its \`npm start\` (process ${record.up.pid}) runs`,
    { remedy: 'stop that with Ctrl-C and start again', cause: fault },
  );
}
