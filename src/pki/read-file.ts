import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** Far above any key, certificate or bundle; keeps a wrong path from being read into memory. */
const MAX_BYTES = 1024 * 1024;
const GROUP_OR_WORLD_READ_WRITE = 0o066;

/** A PKI file that cannot be used, with one line that names it and says what to do. */
export interface FileProblem {
  readonly code: 'pki_file_unreadable' | 'pki_key_permissions';
  readonly path: string;
  readonly message: string;
}

/** The text of a file, or why there is none. */
export type FileReading =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problem: FileProblem };

/**
 * Reads a certificate file, or with `secret` a private key file, which nobody but its owner may read or write.
 * The mode bits decide, not what this process may do, so that root sees the same refusal; they are those of the opened
 * file itself. Never throws.
 */
export async function readPkiFile(path: string, { secret }: { readonly secret: boolean }): Promise<FileReading> {
  try {
    // Non-blocking, so that a named pipe is refused below instead of waited for.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return await readOpened(path, file, secret);
    } finally {
      await file.close();
    }
  } catch (error) {
    return unreadable(
      path,
      `it cannot be read (${error instanceof Error && 'code' in error ? String(error.code) : String(error)})`,
    );
  }
}

async function readOpened(path: string, file: FileHandle, secret: boolean): Promise<FileReading> {
  const stat = await file.stat();
  if (!stat.isFile()) return unreadable(path, 'it is not a regular file');
  if (stat.size > MAX_BYTES) return unreadable(path, 'it is larger than 1 MiB');
  if (secret && (stat.mode & GROUP_OR_WORLD_READ_WRITE) !== 0) {
    const octal = (stat.mode & 0o777).toString(8).padStart(4, '0');
    const message = `${path}: a private key that group or others may read or write (mode ${octal}); run: chmod 0600 ${path}`;
    return { ok: false, problem: { code: 'pki_key_permissions', path, message } };
  }
  return { ok: true, text: await file.readFile('utf8') };
}

function unreadable(path: string, reason: string): FileReading {
  return { ok: false, problem: { code: 'pki_file_unreadable', path, message: `${path}: ${reason}` } };
}
