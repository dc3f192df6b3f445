import { condor } from './condor.ts';
import type { Backend } from './contract.ts';
import { fork } from './fork.ts';
import { gryphus } from './gryphus.ts';
import { lsf } from './lsf.ts';
import { pbs } from './pbs.ts';
import { sge } from './sge.ts';
import { slurm } from './slurm.ts';
import { torque } from './torque.ts';

/**
 * Every batch system that Gryphus can drive, by its name in a site's `batch`. The choices on offer, detection and the
 * checks at submit all use this table.
 */
export const BACKENDS = { fork, slurm, pbs, torque, sge, lsf, condor, gryphus } as const satisfies Record<
  string,
  Backend
>;
/** The name of a batch system, as in `batch = "slurm"` of a site and in `grid_resource`. */
export type BackendName = keyof typeof BACKENDS;
/** Every batch system that a site may have. */
export const BACKEND_NAMES = Object.keys(BACKENDS) as BackendName[];

export function backendOf(name: string): Backend | undefined {
  return new Map<string, Backend>(Object.entries(BACKENDS)).get(name);
}
