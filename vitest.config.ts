import { defineConfig } from 'vitest/config';

const shared = {
  exclude: ['test/host/**', 'test/live/**', 'test/simulation/**', 'node_modules/**'],
  globalSetup: ['test/support/global-setup.ts'],
  pool: 'forks' as const,
  testTimeout: 60_000,
  hookTimeout: 120_000,
};

/**
 * One embedded PostgreSQL serves a project's run (test/support/global-setup.ts); each test file has a database of its own. Most tests wait
 * for sockets and processes, so three files keep two cores busy. Those of whole fleets come after them, one by one, because they compare
 * what happens with bounds of seconds.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: 'parts',
          include: ['test/**/*.test.ts'],
          exclude: [...shared.exclude, 'test/e2e/**'],
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'fleets',
          include: ['test/e2e/**/*.test.ts'],
          // Two minutes of waiting for agents: `npm run test:runbooks`, which CI runs as well.
          exclude: [
            ...shared.exclude,
            ...(process.env['PUSHLEFT_TEST_RUNBOOKS'] === undefined ? ['test/e2e/runbooks.test.ts'] : []),
          ],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
