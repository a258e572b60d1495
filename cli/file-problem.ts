/** Codes of errors without a path, which `read` and `write` give on an open file. */
const WITHOUT_PATH: ReadonlySet<string> = new Set(['EISDIR', 'ENOSPC', 'EDQUOT', 'EFBIG', 'EIO', 'EROFS']);

/** The code of an error of the file system (ENOENT and its like), or undefined for any other, a lost connection included. */
export function fileProblem(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) return undefined;
  return 'path' in error || WITHOUT_PATH.has(error.code) ? error.code : undefined;
}
