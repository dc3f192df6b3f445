import type { Gryphus } from '../../index.ts';
import { Refused } from './options.ts';
import type { SlurmJob, SlurmState } from './slurm-job.ts';
import { expand } from './array-indices.ts';
import { slurmJobs } from './slurm-jobs.ts';

/** The server's name in the ids of PBS. */
export const SERVER = 'gryphus';

/** PBS' exit statuses of a command (pbs_error.h, less 15000). */
export const UNKNOWN_JOB = 153;
export const FINISHED = 35;

/** `12.gryphus`, `12[].gryphus` for a whole array, `12[3].gryphus` for a job of it. */
export function pbsId(cluster: number, task?: number | 'array'): string {
  if (task === undefined) return `${cluster}.${SERVER}`;
  return task === 'array' ? `${cluster}[].${SERVER}` : `${cluster}[${task}].${SERVER}`;
}

/** What a word of a command line names. */
export interface PbsName {
  readonly cluster: number;
  /** Of an array: `whole`, or some of its jobs. */
  readonly tasks?: 'whole' | ReadonlySet<number>;
  /** With the server's name, as messages have it. */
  readonly text: string;
}

/** `12`, `12.gryphus`, `12[]`, `12[3]`, `12[1-9:2]`. */
export function pbsName(word: string): PbsName {
  const [, cluster, brackets, range] = /^(\d{1,15})(\[([\d,\-:]*)\])?(?:\.[\w.-]+)?$/.exec(word) ?? [];
  if (cluster === undefined) throw new Refused(`illegally formed job identifier: ${word}`, 2);
  const text = `${cluster}${brackets ?? ''}.${SERVER}`;
  if (brackets === undefined) return { cluster: Number(cluster), text };
  return { cluster: Number(cluster), tasks: range === '' ? 'whole' : expand(range ?? ''), text };
}

/** Whether the job is one of those; a number without brackets does not name an array. */
export function isOf({ cluster, tasks }: PbsName, job: SlurmJob): boolean {
  if (job.cluster !== cluster) return false;
  if (tasks === undefined) return job.array === '' && (job.task ?? 0) === 0;
  if (tasks === 'whole') return job.array !== '' || job.task !== undefined;
  return tasks.has(job.task ?? 0);
}

/** Jobs by their cluster, in order of their ids. */
export async function byCluster(
  gryphus: Gryphus,
  names: readonly PbsName[] | undefined,
  where: 'queue' | 'everywhere',
): Promise<Map<number, SlurmJob[]>> {
  const found = new Map<number, SlurmJob[]>();
  const named = names?.map(({ cluster, text }) => ({ cluster, text }));
  for await (const job of slurmJobs(gryphus, named, where)) {
    const others = found.get(job.cluster);
    if (others) others.push(job);
    else found.set(job.cluster, [job]);
  }
  for (const jobs of found.values()) jobs.sort((a, b) => (a.task ?? 0) - (b.task ?? 0));
  return new Map([...found].sort(([a], [b]) => a - b));
}

/** PBS' letter for each state. */
const LETTERS: Readonly<Record<SlurmState, string>> = {
  PENDING: 'Q',
  RUNNING: 'R',
  SUSPENDED: 'S',
  COMPLETING: 'E',
  COMPLETED: 'F',
  CANCELLED: 'F',
  FAILED: 'F',
  TIMEOUT: 'F',
  NODE_FAIL: 'F',
  OUT_OF_MEMORY: 'F',
  DEADLINE: 'F',
};

export function letterOf({ state, reason, made }: SlurmJob): string {
  return state === 'PENDING' && made && reason !== 'Priority' ? 'H' : LETTERS[state];
}

export function isFinished(job: SlurmJob): boolean {
  return letterOf(job) === 'F';
}

/** 256 + the signal's number for a job that a signal ended (PBS manual, "job exit status"); absent if it never ran. */
export function exitStatus(job: SlurmJob): number | undefined {
  if (!isFinished(job) || (job.started === undefined && job.starts === 0)) return undefined;
  const [code = 0, signal = 0] = job.exit.split(':').map(Number);
  if (signal > 0) return 256 + signal;
  if (job.state === 'COMPLETED' || code > 0) return code;
  // The batch system ended it, as PBS does by SIGTERM.
  return 256 + 15;
}
