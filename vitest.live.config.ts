import { defineConfig } from 'vitest/config';

/** Whole fleets that take minutes, each run by a command of its own, which CI runs too. */
export default defineConfig({
  test: {
    include: ['test/live/**/*.test.ts', 'test/simulation/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
});
