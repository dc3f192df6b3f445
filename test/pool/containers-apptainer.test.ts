import { describe } from 'vitest';
import { Apptainer, skipWithoutApptainer } from '../sites/apptainer.ts';
import { containerJobs } from './container-jobs.ts';

describe.skipIf(skipWithoutApptainer())('jobs in containers of apptainer', () => {
  containerJobs(() => new Apptainer());
});
