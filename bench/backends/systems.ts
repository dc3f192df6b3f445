import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startCondor } from '../../test/sites/condor.ts';
import type { User } from '../../test/sites/ordinary-user.ts';
import { startSge } from '../../test/sites/sge.ts';
import { startSlurm } from '../../test/sites/slurm.ts';
import { startTorque } from '../../test/sites/slurm-torque.ts';

/** A real batch system on loopback. */
export interface Batch {
  /** The environment that its commands need. */
  readonly env: Readonly<Record<string, string>>;
  /** Files with the process ids of its server, which answers queries. */
  readonly pidFiles: readonly string[];
  /** Whose jobs it runs, if root measures and it accepts none from root. */
  readonly user?: User | undefined;
  stop(): Promise<void>;
}

/** A batch system that is measured against its own commands: adding one entry here adds another. */
export interface System {
  readonly start: () => Promise<Batch>;
  /** One submit of a job that waits, as a user would type it; `job.sh` is a script there. */
  readonly submit: string;
  /** The part of it that makes the job wait, for our submit. */
  readonly waits: string;
  /** What a user would watch the queue with. */
  readonly query: string;
  /** Which of our calls of that command (by their arguments) start a poll; default: all. */
  readonly isLook?: RegExp;
  /** How many of our jobs are put into its queue, if 10,000 would take too long. */
  readonly most?: number;
}

export const SYSTEMS: Readonly<Record<string, System>> = {
  slurm: {
    start: async () => withPids(await startSlurm({ nodes: 2, cpus: 4 }), 'run/slurmctld.pid'),
    submit: 'sbatch --parsable --begin=now+1days --output=/dev/null --wrap true',
    waits: '--begin=now+1days',
    query: 'squeue',
  },
  // Torque's commands in Perl, on top of Slurm's.
  torque: {
    start: async () => withPids(await startTorque(), 'run/slurmctld.pid'),
    submit: 'qsub -h -o /dev/null -e /dev/null job.sh',
    waits: '-h',
    query: 'qstat',
    isLook: /^-f/,
    most: 1000,
  },
  sge: {
    start: async () => withPids(await startSge({ slots: 8 }), 'default/spool/qmaster/qmaster.pid'),
    submit: 'qsub -terse -a 203001010000 -b y -o /dev/null -e /dev/null true',
    waits: '-a 203001010000',
    query: 'qstat',
    isLook: /^-u/,
  },
  condor: {
    start: startPool,
    submit: 'condor_submit -terse executable=/bin/true hold=True -queue 1',
    waits: '-append "hold = True"',
    query: 'condor_q',
    isLook: /^-constraint/,
  },
};

async function startPool(): Promise<Batch> {
  const condor = await startCondor();
  writeFileSync(join(condor.dir, 'schedd.pid'), condor.daemons('schedd').join());
  return withPids(condor, 'schedd.pid');
}

function withPids<T extends { readonly dir: string }>(batch: T, ...files: string[]): T & Pick<Batch, 'pidFiles'> {
  return { ...batch, pidFiles: files.map((file) => join(batch.dir, file)) };
}
