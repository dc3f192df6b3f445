import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    disableConsoleIntercept: true,
    maxWorkers: 2,
    // Real daemons on a shared machine: one more try in CI, and the report says which test needed it.
    retry: process.env['CI'] === 'true' ? 1 : 0,
  },
});
