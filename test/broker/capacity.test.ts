import { expect, it } from 'vitest';
import { fork } from '../../src/backends/fork.ts';
import { pbs } from '../../src/backends/pbs.ts';
import { sge } from '../../src/backends/sge.ts';
import { slurm } from '../../src/backends/slurm.ts';

it.each([
  [slurm, '12/20/4/36', { cpus: 36, freeCpus: 20 }],
  [slurm, '0/0/0/0', { cpus: 0, freeCpus: 0 }],
  [slurm, '', undefined],
  [slurm, '1.5K/2/0/2K', undefined],
  [slurm, 'slurm_load_partitions: Unable to contact slurm controller', undefined],
  [fork, '4 3', { cpus: 4, freeCpus: 1 }],
  [fork, '4', undefined],
  [pbs, '3 16', { cpus: 16, freeCpus: 3 }],
  [sge, 'error: unable to contact qmaster', undefined],
])('the cores that a site says: %o %j', (backend, line, capacity) => {
  expect(backend.capacityOf?.(line)).toEqual(capacity);
});
