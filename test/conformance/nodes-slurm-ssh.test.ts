import { afterAll, beforeAll, describe } from 'vitest';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { sshSlurm } from './grounds.ts';
import type { Ground } from './kit.ts';
import { nodesTests } from './nodes.ts';

describe.skipIf(skipWithoutSlurm())('a Slurm with four nodes', () => {
  let ground: Ground;
  beforeAll(async () => {
    ground = await sshSlurm({}, { nodes: 4, cpus: 2 });
  });
  afterAll(async () => await ground?.close());

  nodesTests({
    listing: `srun sh -c 'echo "$SLURMD_NODENAME $SLURM_PROCID"'`,
    lines: ['n1 0', 'n1 1', 'n2 2', 'n2 3'],
    tooMany: /^(Batch job submission failed|Requested|More|Invalid)/,
    ground: () => ground,
  });
});
