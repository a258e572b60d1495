import { constants } from 'node:fs';
import { access, statfs } from 'node:fs/promises';

export interface SettingsInput {
  socketDir: string;
  /** False for throw-away databases: a crash of the machine loses them. A crash of the server alone loses nothing. */
  durable: boolean;
  dynamicSharedMemory: 'posix' | 'mmap';
}

/** PostgreSQL's settings as `-c name=value` arguments; postgresql.conf stays as initdb wrote it. */
export function serverArguments({ socketDir, durable, dynamicSharedMemory }: SettingsInput): string[] {
  const settings: Record<string, string> = {
    listen_addresses: '',
    // A list: quoted, because a comma or a blank in the path would divide it.
    unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    max_connections: '200',
    shared_buffers: '128MB',
    dynamic_shared_memory_type: dynamicSharedMemory,
    // Containers report huge pages that they then do not grant, and the server dies of SIGBUS.
    huge_pages: 'off',
    jit: 'off',
    max_wal_size: '1GB',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off',
    // A statement that fails may hold a password (CREATE ROLE … PASSWORD): the log names the error alone.
    log_min_error_statement: 'panic',
    // synchronous_commit stays on: without it a killed server forgets what it acknowledged, which tests rely on.
    ...(durable ? {} : { fsync: 'off', full_page_writes: 'off' }),
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Docker gives a container 64 MiB of /dev/shm, which one parallel query can exhaust: then files in the data folder serve. */
const ENOUGH_SHARED_MEMORY_BYTES = 128 * 1024 * 1024;

/** `mmap` where /dev/shm is missing, closed or too small. */
export async function chooseDynamicSharedMemory(directory = '/dev/shm'): Promise<'posix' | 'mmap'> {
  try {
    await access(directory, constants.W_OK);
    const { bavail, bsize } = await statfs(directory);
    return bavail * bsize >= ENOUGH_SHARED_MEMORY_BYTES ? 'posix' : 'mmap';
  } catch {
    return 'mmap';
  }
}
