import { defineConfig } from 'vitest/config';
import { LongFirst } from './test/long-first.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    disableConsoleIntercept: true,
    // Most of a test's time is waiting for a real daemon: four share two cores well.
    maxWorkers: 4,
    sequence: { sequencer: LongFirst },
    // Real daemons on a shared machine: two more tries in CI, and the report says which test needed them.
    retry: process.env['CI'] === 'true' ? 2 : 0,
  },
});
