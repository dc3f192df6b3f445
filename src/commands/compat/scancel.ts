import type { Gryphus } from '../../index.ts';
import { getopt, Refused } from './options.ts';
import { ATTRIBUTES, isNamed, type Named, namedJobs, type SlurmJob, slurmJob, slurmJobs } from './slurm-jobs.ts';

const SPEC =
  '-u|--user= -n|--name= --jobname= -p|--partition= -t|--state= -s|--signal= -f|--full -b|--batch -Q|--quiet -v|--verbose --me -M|--clusters= --cluster= -A|--account= -H|--hurry';

/** The exit status. */
export async function scancel(
  gryphus: Gryphus,
  words: readonly string[],
  warn: (text: string) => void,
): Promise<number> {
  const { values, words: rest } = getopt(SPEC, words);
  const signal = values.get('signal');
  if (signal !== undefined && !/^(SIG)?(KILL|TERM)$|^9$|^15$/.test(signal))
    throw new Refused(`--signal=${signal}: only TERM and KILL are supported`);
  const filters = ['user', 'name', 'jobname', 'partition', 'state', 'me', 'account'];
  if (rest.length === 0 && !filters.some((one) => values.has(one))) throw new Refused('No job identification provided');
  const named = rest.length === 0 ? undefined : rest.flatMap((word) => namedJobs(word));
  const fits = (job: SlurmJob) =>
    isNamed(job, named) &&
    fitsOne(values.get('user') ?? (values.has('me') ? process.env['USER'] : undefined), job.user) &&
    fitsOne(values.get('name') ?? values.get('jobname'), job.name) &&
    fitsOne(values.get('partition'), job.partition) &&
    fitsOne(values.get('account'), job.account) &&
    (fitsOne(values.get('state')?.toUpperCase(), job.state) || fitsOne(values.get('state')?.toUpperCase(), job.code));
  const ids = [];
  const seen = new Set<number>();
  const clusters = named && [...new Set(named.map(({ cluster }) => cluster))];
  for await (const view of gryphus.query({ attributes: ATTRIBUTES, ...(clusters && { clusters }) })) {
    const job = slurmJob(view);
    if (!fits(job)) continue;
    seen.add(job.cluster);
    ids.push(view.id);
  }
  const whole = (named ?? [])
    .filter((one) => one.tasks === undefined && seen.has(one.cluster))
    .map(({ cluster }) => cluster);
  // Whole clusters, so that no more of their jobs are made.
  if (whole.length > 0) await gryphus.act('remove', { clusters: whole, reason: 'scancel' });
  const others = ids.filter(({ cluster }) => !whole.includes(cluster));
  if (others.length > 0) await gryphus.act('remove', { ids: others, reason: 'scancel' });
  let status = 0;
  for (const one of named ?? []) {
    const { cluster, tasks, text } = one;
    if ((tasks === undefined && seen.has(cluster)) || (await isKnown(gryphus, one))) continue;
    if (await isKnown(gryphus, { cluster, text }))
      warn(`scancel: error: ${text}: this task has not been created yet; cancel the whole array\n`);
    else if (!values.has('quiet')) warn(`scancel: error: Kill job error on job id ${text}: Invalid job id specified\n`);
    status = 1;
  }
  return status;
}

function fitsOne(list: string | undefined, value: string): boolean {
  return list === undefined || list.split(',').includes(value);
}

/** Whether there is such a job; one that has ended is no error. */
async function isKnown(gryphus: Gryphus, { cluster, tasks, text }: Named): Promise<boolean> {
  const seen = new Set<number>();
  for await (const { task } of slurmJobs(gryphus, [{ cluster, text }], 'everywhere')) {
    if (tasks === undefined) return true;
    seen.add(task ?? 0);
  }
  return tasks !== undefined && [...tasks].every((task) => seen.has(task));
}
