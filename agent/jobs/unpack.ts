import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { JobFailed } from '../job-runner.ts';
import { hasCode } from '../state-fs.ts';

const run = promisify(execFile);

/** All files of an archive together: a small archive may be a large tree. */
const UNPACKED_MAX_BYTES = 2 * 1024 ** 3;
/** Longest list of an archive's entries. */
const LIST_MAX_BYTES = 16 * 1024 ** 2;
/** A line of `tar --list --verbose`: type, mode, owner and size; POSIX prints device numbers where other entries have their size. */
const LISTED = /^([-dlh])[-rwxsStT]{9}\S* +\S+ +(\d+) /;

/**
 * Unpacks a tar archive (compressed or not) with the host's tar. It is listed first, and nothing of it unpacked unless every entry is a file, a
 * folder or a link below the folder. Throws JobFailed `work_failed` otherwise.
 */
export async function unpack(archive: string, folder: string, signal: AbortSignal): Promise<void> {
  const names = await tar(['--list', '--file', archive], signal);
  const outside = names.split('\n').find((name) => name.startsWith('/') || name.split('/').includes('..'));
  if (outside !== undefined) throw refused('an entry of it leads out of its folder');
  const entries = (await tar(['--list', '--verbose', '--numeric-owner', '--file', archive], signal))
    .split('\n')
    .filter(Boolean);
  const listed = entries.map((entry) => LISTED.exec(entry));
  if (listed.includes(null)) throw refused('an entry of it is no file, folder or link');
  const bytes = listed.reduce((sum, match) => sum + Number(match?.[2]), 0);
  if (bytes > UNPACKED_MAX_BYTES) throw refused(`its files are larger than ${UNPACKED_MAX_BYTES} bytes`);
  const asNobody = ['--no-same-owner', '--no-same-permissions'];
  await tar(['--extract', ...asNobody, '--file', archive, '--directory', folder], signal);
}

async function tar(args: readonly string[], signal: AbortSignal): Promise<string> {
  const env = { PATH: process.env['PATH'], LC_ALL: 'C' };
  try {
    return (await run('tar', args, { env, signal, maxBuffer: LIST_MAX_BYTES })).stdout;
  } catch (error) {
    signal.throwIfAborted();
    const why = hasCode(error, 'ENOENT') ? 'the host has no tar' : 'it is no tar archive, or too large a one';
    throw new JobFailed('work_failed', `the source cannot be unpacked: ${why}`, { cause: error });
  }
}

function refused(why: string): JobFailed {
  return new JobFailed('work_failed', `the source is not unpacked: ${why}`);
}
