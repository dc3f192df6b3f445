import { skipWithoutSlurm } from '../sites/slurm.ts';
import { arrayTests } from './arrays.ts';
import { sshSlurm } from './grounds.ts';
import { slurmFaults } from './slurm-faults.ts';
import { testSite } from './suite.ts';

const arrays = arrayTests<Awaited<ReturnType<typeof sshSlurm>>>({
  submit: 'sbatch',
  isArray: '*--array=*',
  refuses: { message: 'sbatch: error: Batch job submission failed: Invalid job array specification', status: 1 },
  env: (ground) => ground.slurm.env,
  remove: (ground, id) => ground.slurm.run('scancel', id),
});
testSite({
  name: 'slurm over ssh',
  makeSite: () => sshSlurm(),
  skip: skipWithoutSlurm(),
  more: (ground) => [slurmFaults, arrays].forEach((tests) => tests(ground)),
});
