import { configDefaults, defineConfig } from 'vitest/config';
import { LongFirst } from './test/long-first.ts';
import { SLOW } from './test/slow.ts';

/** Long files whose subject others cover in part; an ordinary run leaves them out. */
const SLOW_LANE = [
  'test/agent/{gram,java,limits-sge,older-copy,pi,requeue-slurm,to-gryphus-ssh}.test.ts',
  'test/attacks/{endless,numbering}.test.ts',
  'test/broker/own-requests-slurm.test.ts',
  'test/conformance/{lsf,nodes-htcondor,torque}-ssh.test.ts',
  'test/crash/{flood,gram,gram-removal}.test.ts',
  'test/dag/examples-real.test.ts',
  'test/glidein/{containers-apptainer-slurm,glideins-sge}.test.ts',
  'test/gram/{broken-off,cut,failures}.test.ts',
  'test/pool/containers-docker.test.ts',
];

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Which process runs a file, for report.ts.
    setupFiles: ['test/began.ts'],
    exclude: [...configDefaults.exclude, ...(SLOW ? [] : SLOW_LANE)],
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
