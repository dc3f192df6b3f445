/** What a submit description may ask of the batch system behind a GRAM service. */
export type Asked =
  | 'request_cpus'
  | 'request_memory'
  | 'request_gpus'
  | 'batch_runtime'
  | 'batch_queue'
  | 'batch_project';

/** RSL's attributes for what a job asks for; without one it is not said. */
export interface RslWords {
  readonly cpus?: 'count' | 'xcount';
  /** Where `count` alone may be spread over machines: how many machines. */
  readonly hosts?: 'host_count';
  readonly memory?: 'max_memory' | 'min_memory';
  readonly walltime: 'max_wall_time';
  readonly queue: 'queue';
  readonly project: 'project';
}

/** One of the programs that Globus' job manager submits with: `jobmanager-NAME` is its service. */
export interface GramAdapter {
  readonly name: string;
  readonly words: RslWords;
  /** What it passes over without a word. */
  readonly ignores: readonly Asked[];
}

const RSL: RslWords = {
  cpus: 'count',
  memory: 'max_memory',
  walltime: 'max_wall_time',
  queue: 'queue',
  project: 'project',
};
const NO_CPUS: RslWords = { memory: 'max_memory', walltime: 'max_wall_time', queue: 'queue', project: 'project' };

/** As Debian's packages `globus-gram-job-manager-NAME` have them; RSL has no word for accelerators. */
const ADAPTERS: Readonly<Record<string, Omit<GramAdapter, 'name'>>> = {
  fork: {
    words: RSL,
    ignores: ['request_cpus', 'request_memory', 'request_gpus', 'batch_runtime', 'batch_queue', 'batch_project'],
  },
  // Without the number of machines it takes max_memory for each core's.
  slurm: { words: { ...RSL, hosts: 'host_count' }, ignores: ['request_gpus', 'batch_runtime'] },
  pbs: { words: RSL, ignores: ['request_gpus'] },
  lsf: { words: RSL, ignores: ['request_gpus'] },
  // A count makes an array of so many tasks there, and as many jobs in Condor's queue.
  sge: { words: NO_CPUS, ignores: ['request_cpus', 'request_gpus'] },
  condor: {
    words: { ...RSL, cpus: 'xcount', memory: 'min_memory' },
    ignores: ['request_gpus', 'batch_queue', 'batch_project'],
  },
};

/** The adapter that a service's name stands for; one that we do not know is taken to do as RSL's description says. */
export function gramAdapter(service: string): GramAdapter {
  const [, name = ''] = /^jobmanager-([a-z]+)/.exec(service) ?? [];
  return { name, ...(ADAPTERS[name] ?? { words: RSL, ignores: ['request_gpus'] }) };
}
