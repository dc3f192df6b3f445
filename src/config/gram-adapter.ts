/** What a submit description may request of the batch system behind a GRAM service. */
export type Asked =
  | 'request_cpus'
  | 'request_memory'
  | 'request_gpus'
  | 'batch_runtime'
  | 'batch_queue'
  | 'batch_project';

/** RSL's attributes for what a job requests; a request without one is not passed on. */
export interface RslNames {
  readonly cpus?: 'count' | 'xcount';
  /** The number of machines, if it takes one. */
  readonly hosts?: 'host_count';
  /** With the number of machines, the count is that of each machine; otherwise, as RSL says, of all. */
  readonly countIs?: 'of each host';
  readonly memory?: 'max_memory' | 'min_memory';
  readonly walltime: 'max_wall_time';
  readonly queue: 'queue';
  readonly project: 'project';
}

/** One of the programs with which Globus' job manager submits: its service is `jobmanager-NAME`. */
export interface GramAdapter {
  readonly name: string;
  readonly rslNames: RslNames;
  /** Requests that it ignores silently. */
  readonly ignores: readonly Asked[];
}

const RSL: RslNames = {
  cpus: 'count',
  hosts: 'host_count',
  memory: 'max_memory',
  walltime: 'max_wall_time',
  queue: 'queue',
  project: 'project',
};
const { hosts: _, ...ONE_HOST } = RSL;
const NO_CPUS: RslNames = { memory: 'max_memory', walltime: 'max_wall_time', queue: 'queue', project: 'project' };

/** As in Debian's packages `globus-gram-job-manager-NAME`; RSL has no attribute for accelerators. */
const ADAPTERS: Readonly<Record<string, Omit<GramAdapter, 'name'>>> = {
  fork: {
    rslNames: ONE_HOST,
    ignores: ['request_cpus', 'request_memory', 'request_gpus', 'batch_runtime', 'batch_queue', 'batch_project'],
  },
  // Without the number of machines, it applies max_memory to each core.
  slurm: { rslNames: { ...RSL, countIs: 'of each host' }, ignores: ['request_gpus', 'batch_runtime'] },
  pbs: { rslNames: RSL, ignores: ['request_gpus'] },
  lsf: { rslNames: RSL, ignores: ['request_gpus'] },
  // There, a count makes an array of that many tasks; in Condor's queue, that many jobs.
  sge: { rslNames: NO_CPUS, ignores: ['request_cpus', 'request_gpus'] },
  condor: {
    rslNames: { ...ONE_HOST, cpus: 'xcount', memory: 'min_memory' },
    ignores: ['request_gpus', 'batch_queue', 'batch_project'],
  },
};

/** The adapter for a service's name; an unknown one is assumed to follow RSL's description. */
export function gramAdapter(service: string): GramAdapter {
  const [, name = ''] = /^jobmanager-([a-z]+)/.exec(service) ?? [];
  return { name, ...(ADAPTERS[name] ?? { rslNames: RSL, ignores: ['request_gpus'] }) };
}
