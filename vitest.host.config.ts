import { defineConfig } from 'vitest/config';

/** Tests that need Debian packages beside npm's: they fail, naming the package, where one is missing. */
export default defineConfig({
  test: {
    include: ['test/host/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
