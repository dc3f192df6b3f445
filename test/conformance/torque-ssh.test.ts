import type { Slurm } from '../sites/slurm.ts';
import { skipWithoutTorque } from '../sites/slurm-torque.ts';
import { batchFaults } from './batch-faults.ts';
import { type BatchGround, sshTorque } from './batch-grounds.ts';
import { nodesTests } from './nodes.ts';
import { OF_ITS_COMMANDS, testSite } from './suite.ts';

const faults = batchFaults({
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
const several = (ground: () => BatchGround<Slurm>): void =>
  nodesTests({ listing: 'echo "$SLURM_JOB_NODELIST $SLURM_NTASKS"', lines: ['n[1-2] 4'], ground });
testSite({
  name: "Torque's commands over ssh",
  makeSite: sshTorque,
  ordinary: OF_ITS_COMMANDS,
  skip: skipWithoutTorque(),
  more: (ground) => [faults, several].forEach((tests) => tests(ground)),
});
