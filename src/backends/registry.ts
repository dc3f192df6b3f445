import { condor } from './condor.ts';
import type { Backend } from './contract.ts';
import { fork } from './fork.ts';
import { gryphus } from './gryphus.ts';
import { lsf } from './lsf.ts';
import { pbs } from './pbs.ts';
import { sge } from './sge.ts';
import { slurm } from './slurm.ts';
import { torque } from './torque.ts';

/** Every batch system that Gryphus can drive, by the name that a site's `batch` gives it. */
export const BACKENDS: Readonly<Record<string, Backend>> = { fork, slurm, pbs, torque, sge, lsf, condor, gryphus };
