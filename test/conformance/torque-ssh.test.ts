import { skipWithoutTorque } from '../sites/slurm-torque.ts';
import { batchFaults } from './batch-faults.ts';
import { sshTorque } from './batch-grounds.ts';
import { testSite } from './suite.ts';

const more = batchFaults({
  submit: 'qsub',
  query: 'qstat',
  remove: 'qdel',
  down: {
    message:
      "There was an error running the Slurm sbatch command.\nand the output was:\n'sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n'",
    status: 1,
    queryStatus: 8,
  },
  held: ['-h'],
  silent: true,
  noQueue: /invalid partition/i,
});
testSite({ name: "Torque's commands over ssh", makeSite: sshTorque, skip: skipWithoutTorque(), more });
