import type { Gryphus } from '../../index.ts';
import { type Given, getopt, Refused } from './options.ts';
import { LIVE, type SlurmJob } from './slurm-job.ts';
import { type Named, namedJobs, slurmJobs } from './slurm-jobs.ts';
import { actOn, inClusters, targetsOf } from './slurm-targets.ts';

/** Its options, for `getopt`. */
export const SPEC =
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
  const targets = await targetsOf(gryphus, named, {
    unmade: true,
    ...(filtered ? { fits: filterOf(given) } : {}),
  });
  if (values.has('verbose')) for (const one of named ?? []) warn(await said(gryphus, one));
  await actOn(gryphus, 'remove', targets, 'scancel');
  return 0;
}

/** What `--verbose` says of a job; without it, nothing is said even of one that there is not. */
async function said(gryphus: Gryphus, one: Named): Promise<string> {
  let wrong = 'Invalid job id specified';
  for await (const { state } of slurmJobs(gryphus, [one], 'everywhere')) {
    wrong = LIVE.has(state) ? '' : 'Job/step already completing or completed';
    if (wrong === '') break;
  }
  const error = wrong === '' ? '' : `scancel: error: Kill job error on job id ${one.text}: ${wrong}\n`;
  return `scancel: Terminating job ${one.text}\n${error}`;
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
