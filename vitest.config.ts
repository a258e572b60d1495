import { defineConfig } from 'vitest/config';

/** One embedded PostgreSQL serves the whole run (test/support/global-setup.ts); each test file has a database of its own. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/host/**', 'node_modules/**'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Most tests wait for sockets and processes, so three files keep two cores busy; by itself vitest would run one at a time there.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
