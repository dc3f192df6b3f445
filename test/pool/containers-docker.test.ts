import { describe } from 'vitest';
import { Dockerd, skipWithoutDockerd } from '../sites/dockerd.ts';
import { containerJobs } from './container-jobs.ts';

describe.skipIf(skipWithoutDockerd())('jobs in containers of a docker daemon', () => {
  containerJobs(() => Dockerd.start(), true);
});
