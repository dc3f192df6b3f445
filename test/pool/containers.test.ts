import { describe } from 'vitest';
import { Podman } from '../sites/podman.ts';
import { containerJobs } from './container-jobs.ts';

describe('jobs in containers of podman', () => {
  containerJobs(() => new Podman());
});
