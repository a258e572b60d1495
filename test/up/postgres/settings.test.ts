import { describe, expect, test } from 'vitest';
import { chooseDynamicSharedMemory, serverArguments } from '../../../src/up/postgres/settings.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

describe('dynamic shared memory', () => {
  test('folder with room: posix', async () => {
    await using roomy = await temporaryDirectory();
    expect(await chooseDynamicSharedMemory(roomy.path)).toBe('posix');
  });

  test('folder missing: mmap', async () => expect(await chooseDynamicSharedMemory('/no/such/folder')).toBe('mmap'));

  test('file system without a free block: mmap', async () =>
    expect(await chooseDynamicSharedMemory('/proc')).toBe('mmap'));
});

test('socket folder with a comma, a blank and a quote: one entry of the list', () =>
  expect(serverArguments({ socketDir: '/a, "b', durable: true, dynamicSharedMemory: 'posix' })).toContain(
    'unix_socket_directories="/a, ""b"',
  ));
