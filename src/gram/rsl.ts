import type { RslNames } from '../config/gram-adapter.ts';
import type { AttemptSpec } from '../site/contract.ts';

/** What the job manager must know about a job; everything else travels in the package. */
export interface RslFacts {
  /** The URL of this job's files on our GASS server, without a trailing slash. */
  readonly base: string;
  readonly key: string;
  /** The length of the script before the package, in bytes. */
  readonly scriptBytes: number;
  /** The URLs on our GASS server of content that jobs share, keyed by the last part of the path. */
  readonly shared: ReadonlyMap<string, string>;
  readonly resources: AttemptSpec['resources'];
  readonly batch: AttemptSpec['batch'];
  /** The names that the service's adapter uses for the job's requirements. */
  readonly rslNames: RslNames;
}

/** How long a job waits for its commit, in seconds, before the job manager drops it. */
export const TWO_PHASE_SECONDS = 600;

/** Quotes a value for RSL: in double quotes, with those inside doubled. */
export function rslQuote(value: string): string {
  return `"${value.replaceAll('"', '""')}"`;
}

function relation(name: string | undefined, value: string | number | undefined): string {
  return name === undefined || value === undefined
    ? ''
    : `(${name}=${typeof value === 'number' ? value : rslQuote(value)})`;
}

function stagedPair([name, url]: readonly [string, string]): string {
  return `(${rslQuote(url)} $(SCRATCH_DIRECTORY)/${name})`;
}

function coresOf({ cpus, nodes }: RslFacts['resources'], names: RslNames): string[] {
  const hosts = nodes?.count ?? 1;
  if (cpus * hosts === 1) return [];
  if (names.countIs === 'of each host') return [relation(names.cpus, cpus), relation(names.hosts, hosts)];
  return [relation(names.cpus, cpus * hosts), ...(hosts > 1 ? [relation(names.hosts, hosts)] : [])];
}

/** The request for the job: two-phase commit, saved state, files transferred through our GASS server. */
export function jobRsl({ base, key, scriptBytes, shared, resources, batch, rslNames }: RslFacts): string {
  const { memoryMb, walltimeSeconds } = resources;
  return [
    '&',
    relation('executable', `${base}/job`),
    ...(shared.size === 0
      ? [`(arguments=${rslQuote(key)} ${scriptBytes})`]
      : [
          // GRAM creates the directory in the user's home and removes it at the end.
          '(scratch_dir=".")',
          `(arguments=${rslQuote(key)} ${scriptBytes} $(SCRATCH_DIRECTORY))`,
          `(file_stage_in_shared=${[...shared].map(stagedPair).join('')})`,
        ]),
    relation('stdout', `${base}/out`),
    relation('stderr', `${base}/err`),
    relation('remote_io_url', base),
    relation('job_type', 'single'),
    ...coresOf(resources, rslNames),
    relation(rslNames.memory, memoryMb),
    relation(rslNames.walltime, walltimeSeconds === undefined ? undefined : Math.ceil(walltimeSeconds / 60)),
    relation(rslNames.queue, batch.queue),
    relation(rslNames.project, batch.project),
    relation('save_state', 'yes'),
    relation('two_phase', TWO_PHASE_SECONDS),
    batch.extraArgs.join(' '),
  ].join('');
}

/** Where to send results when our GASS server is no longer where the job was told. */
export function stdioRsl(base: string, withRemoteIo: boolean): string {
  const streams = relation('stdout', `${base}/out`) + relation('stderr', `${base}/err`);
  return withRemoteIo ? `&${streams}${relation('remote_io_url', base)}` : streams;
}
