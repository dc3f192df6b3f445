import type { Gryphus } from '../../index.ts';
import { type Given, getopt, Refused } from './options.ts';
import type { SlurmJob } from './slurm-job.ts';
import { type Named, namedJobs, slurmJobs } from './slurm-jobs.ts';
import { actOn, inClusters, targetsOf } from './slurm-targets.ts';

const SPEC =
  '-u|--user= -n|--name= --jobname= -p|--partition= -t|--state= -s|--signal= -f|--full -Q|--quiet -v|--verbose --me -M|--clusters= -A|--account=';
const FILTERS = ['user', 'name', 'jobname', 'partition', 'state', 'me', 'account', 'clusters'];

/** The exit status. */
export async function scancel(
  gryphus: Gryphus,
  words: readonly string[],
  warn: (text: string) => void,
): Promise<number> {
  const given = getopt(SPEC, words);
  const { values, words: rest } = given;
  const signal = values.get('signal');
  if (signal !== undefined && !/^(SIG)?(KILL|TERM)$|^9$|^15$/.test(signal))
    throw new Refused(`--signal=${signal}: only TERM and KILL are supported`);
  const filtered = FILTERS.some((one) => values.has(one));
  if (rest.length === 0 && !filtered) throw new Refused('No job identification provided');
  const named = rest.length === 0 ? undefined : rest.flatMap((word) => namedJobs(word));
  const targets = await targetsOf(gryphus, named, filtered ? filterOf(given) : undefined);
  const { seen } = targets;
  await actOn(gryphus, 'remove', targets, 'scancel');
  let status = 0;
  for (const one of named ?? []) {
    const { cluster, tasks, text } = one;
    if ((tasks === undefined && seen.has(cluster)) || (await isKnown(gryphus, one))) continue;
    if (await isKnown(gryphus, { cluster, text })) {
      warn(`scancel: error: ${text}: this task has not been created yet; cancel the whole array\n`);
      status = 1;
    } else if (values.has('verbose'))
      warn(`scancel: error: Kill job error on job id ${text}: Invalid job id specified\n`);
  }
  return status;
}

function filterOf(given: Given): (job: SlurmJob) => boolean {
  const { values } = given;
  const here = inClusters(given);
  const state = values.get('state')?.toUpperCase();
  return (job) =>
    here(job) &&
    fitsOne(values.get('user') ?? (values.has('me') ? process.env['USER'] : undefined), job.user) &&
    fitsOne(values.get('name') ?? values.get('jobname'), job.name) &&
    fitsOne(values.get('partition'), job.partition) &&
    fitsOne(values.get('account'), job.account) &&
    (fitsOne(state, job.state) || fitsOne(state, job.code));
}

function fitsOne(list: string | undefined, value: string): boolean {
  return list === undefined || list.split(',').includes(value);
}

/** Whether there is such a job; one that has ended is no error. */
async function isKnown(gryphus: Gryphus, { cluster, tasks, text }: Named): Promise<boolean> {
  const seen = new Set<number>();
  for await (const { task, made } of slurmJobs(gryphus, [{ cluster, text }], 'everywhere')) {
    if (tasks === undefined) return true;
    if (made) seen.add(task ?? 0);
  }
  return tasks !== undefined && [...tasks].every((task) => seen.has(task));
}
