import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { writeFileAtomic } from '../../src/pki/atomic-file.ts';
import { temporaryFolder } from './support.ts';

describe('writing a file atomically', () => {
  test('new file: content and mode, whatever the umask, and nothing else in the folder', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'secret');
    const umask = process.umask(0o077);
    try {
      await writeFileAtomic(path, 'new', 0o644);
    } finally {
      process.umask(umask);
    }
    expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777, readdirSync(folder.path)]).toEqual([
      'new',
      0o644,
      ['secret'],
    ]);
  });

  test('existing file: another inode, so that a reader of the old one keeps reading it whole', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'secret');
    writeFileSync(path, 'old', { mode: 0o644 });
    const { ino } = statSync(path);
    await writeFileAtomic(path, Buffer.from('new'), 0o600);
    expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777, statSync(path).ino === ino]).toEqual([
      'new',
      0o600,
      false,
    ]);
  });

  test('the rename fails: thrown, and no temporary file stays', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'taken');
    mkdirSync(path);
    await expect(writeFileAtomic(path, 'new', 0o600)).rejects.toThrow('EISDIR');
    expect(readdirSync(folder.path)).toEqual(['taken']);
  });
});
