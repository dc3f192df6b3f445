import type { RslWords } from '../config/gram-adapter.ts';
import type { AttemptSpec } from '../site/contract.ts';

/** What of a job the job manager must know; all else travels in the package. */
export interface RslFacts {
  /** Where this job's files are on our GASS server, without a slash at the end. */
  readonly base: string;
  readonly key: string;
  /** The length of the script before the package, bytes. */
  readonly scriptBytes: number;
  /** Content that jobs share, by the last part of its path: where it is on our GASS server. */
  readonly shared: ReadonlyMap<string, string>;
  readonly resources: AttemptSpec['resources'];
  readonly batch: AttemptSpec['batch'];
  /** What the service's adapter calls what the job asks for. */
  readonly words: RslWords;
}

/** Seconds that a job waits for its commit before the job manager lets it go. */
export const TWO_PHASE_SECONDS = 600;

/** A value as RSL has it: in double quotes, those inside doubled. */
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

/** GRAM's request for the job: two-phase commit, state kept, files from and to our GASS server. */
export function jobRsl({ base, key, scriptBytes, shared, resources, batch, words }: RslFacts): string {
  const { cpus, memoryMb, walltimeSeconds } = resources;
  return [
    '&',
    relation('executable', `${base}/job`),
    ...(shared.size === 0
      ? [`(arguments=${rslQuote(key)} ${scriptBytes})`]
      : [
          // GRAM makes the directory in the user's home, and removes it at the end.
          '(scratch_dir=".")',
          `(arguments=${rslQuote(key)} ${scriptBytes} $(SCRATCH_DIRECTORY))`,
          `(file_stage_in_shared=${[...shared].map(stagedPair).join('')})`,
        ]),
    relation('stdout', `${base}/out`),
    relation('stderr', `${base}/err`),
    relation('remote_io_url', base),
    relation('job_type', 'single'),
    ...(cpus > 1 ? [relation(words.cpus, cpus), relation(words.hosts, 1)] : []),
    relation(words.memory, memoryMb),
    relation(words.walltime, walltimeSeconds === undefined ? undefined : Math.ceil(walltimeSeconds / 60)),
    relation(words.queue, batch.queue),
    relation(words.project, batch.project),
    relation('save_state', 'yes'),
    relation('two_phase', TWO_PHASE_SECONDS),
    batch.extraArgs.join(' '),
  ].join('');
}

/** Where results go when our GASS server is no longer where the job was told. */
export function stdioRsl(base: string, withRemoteIo: boolean): string {
  const streams = relation('stdout', `${base}/out`) + relation('stderr', `${base}/err`);
  return withRemoteIo ? `&${streams}${relation('remote_io_url', base)}` : streams;
}
