import type { AdText, Gryphus } from '../../index.ts';
import { spans } from './array-indices.ts';
import { type Given, getopt, Refused } from './options.ts';
import { LISTED_ATTRIBUTES, LIVE, type SlurmJob, STATE_NAMES, stateNamed } from './slurm-job.ts';
import { namedJobs, slurmJobChunks, slurmJobs } from './slurm-jobs.ts';
import { slurmDocument, squeueJson } from './slurm-json.ts';
import { inClusters } from './slurm-targets.ts';
import { type Column, columnsOf, fieldOf, isListed, lineOf, linesOf, longColumnsOf } from './squeue-fields.ts';

/** Its options, for `getopt`. */
export const SPEC =
  '-h|--noheader -o|--format= -j|--jobs= -u|--user= -n|--name= -t|--states= -p|--partition= -M|--clusters= -l|--long -r|--array -S|--sort= -a|--all --me --local -A|--account= -O|--Format= --json --start -i|--iterate= -s|--steps=? -w|--nodelist= -q|--qos= -L|--licenses= -R|--reservation= -v|--verbose';

const USUAL = '%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R';
/** What `--start` shows of the jobs that wait. */
const START = '%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R';
const LONG = '%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R';

export async function squeue(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const given = getopt(SPEC, words);
  if (given.words.length > 0) throw new Refused(`Unrecognized option: ${given.words[0]}`);
  const { values } = given;
  const jobs = values.get('jobs');
  const named =
    jobs === undefined || jobs === '' ? undefined : namedJobs(jobs, (word) => new Refused(`Invalid job id: ${word}`));
  const wanted = wantedBy(given);
  for (const option of ['iterate', 'steps', 'nodelist', 'qos', 'licenses', 'reservation'])
    if (values.has(option)) throw new Refused(`option '--${option}' is not supported`);
  const columns = columnsBy(given);
  const now = Math.floor(Date.now() / 1000);
  const where = values.get('states') === undefined ? 'queue' : 'everywhere';
  const plain = !['json', 'sort', 'account'].some((option) => values.has(option)) && columns.every(isListed);
  const request = plain ? { attributes: LISTED_ATTRIBUTES } : {};
  const known = new Map<AdText, boolean>();
  const each = values.has('array') || values.has('json');
  // An array may have a million tasks.
  const atOnce = values.has('array') && !values.has('json') && !values.has('sort');
  let found: SlurmJob[] = [];
  let seen = 0;
  let head = values.has('noheader') ? [] : [lineOf(columns, (field) => field.head)];
  const print = (jobs: readonly SlurmJob[]) => {
    const text = [...head, ...linesOf(columns, jobs, now)];
    head = [];
    if (text.length > 0) write(`${text.join('\n')}\n`);
  };
  for await (const some of slurmJobChunks(gryphus, named, where, request, !each)) {
    for (const job of some) {
      seen++;
      let isWanted = known.get(job.ad);
      if (isWanted === undefined) known.set(job.ad, (isWanted = wanted(job)));
      if (isWanted) found.push(job);
    }
    if (!atOnce || found.length === 0) continue;
    print(found);
    found = [];
    known.clear();
  }
  // Of several, those that are not there are left out.
  if (named?.length === 1 && seen === 0) await mustExist(gryphus, jobs ?? '');
  const order = ordered(found, values.get('sort') ?? '', now);
  if (values.has('json')) write(slurmDocument('openapi/v0.0.38', order.map(squeueJson)));
  else print(values.has('array') ? order : joined(order));
  return 0;
}

function columnsBy({ values }: Given): Column[] {
  const [short, long] = [values.get('format'), values.get('Format')];
  if (short !== undefined && long !== undefined)
    throw new Refused('-o (--format) and -O (--Format) are mutually exclusive');
  if (long !== undefined) return longColumnsOf(long);
  if (short !== undefined) return columnsOf(short);
  const { SQUEUE_FORMAT, SQUEUE_FORMAT2 } = process.env;
  if (SQUEUE_FORMAT2 !== undefined) return longColumnsOf(SQUEUE_FORMAT2);
  if (values.has('start')) return columnsOf(START);
  return columnsOf(SQUEUE_FORMAT ?? (values.has('long') ? LONG : USUAL));
}

const BY_VALUE = new Intl.Collator('en', { numeric: true });

/** In the order of `--sort`: letters of `--format`, `-` before those that descend. */
function ordered(jobs: readonly SlurmJob[], sort: string, now: number): readonly SlurmJob[] {
  const keys = [...sort.matchAll(/([+-]?)([A-Za-z])|[^,\s]/g)].map(([whole, sign, letter = '']) => {
    const field = fieldOf(letter);
    if (field === undefined) throw new Refused(`the sort field ${whole} is not supported`);
    return { value: field.value, sign: sign === '-' ? -1 : 1 };
  });
  if (keys.length === 0) return jobs;
  return jobs.toSorted((a, b) => {
    for (const { value, sign } of keys) {
      const order = sign * BY_VALUE.compare(value(a, now), value(b, now));
      if (order !== 0) return order;
    }
    return 0;
  });
}

function wantedBy(given: Given): (job: SlurmJob) => boolean {
  const { values } = given;
  const here = inClusters(given);
  const list = (name: string) => values.get(name)?.split(',');
  const users = list('user') ?? (values.has('me') ? [process.env['USER'] ?? ''] : undefined);
  const names = list('name');
  const partitions = list('partition');
  const accounts = list('account');
  const states = list('states')?.map((word) => {
    const state = word.toUpperCase() === 'ALL' ? 'ALL' : stateNamed(word);
    if (state !== undefined) return state;
    const valid = `Valid job states include: ${STATE_NAMES.join(',')}`;
    throw new Refused(`Invalid job state specified: ${word}\n${valid}`);
  });
  return (job) =>
    (!values.has('start') || job.state === 'PENDING') &&
    (states === undefined ? LIVE.has(job.state) : states.includes('ALL') || states.includes(job.state)) &&
    (users === undefined || users.includes(job.user)) &&
    (names === undefined || names.includes(job.name)) &&
    (partitions === undefined || partitions.includes(job.partition)) &&
    (accounts === undefined || accounts.includes(job.account)) &&
    here(job);
}

/** A job that has ended is listed no more; one that never was is an error. */
async function mustExist(gryphus: Gryphus, jobs: string): Promise<void> {
  for await (const _ of slurmJobs(gryphus, namedJobs(jobs), 'everywhere')) return;
  throw new Refused('slurm_load_jobs error: Invalid job id specified', 1, 'bare');
}

/** Pending tasks of an array share a line: `12_[3-5,9%2]`. */
function joined(jobs: readonly SlurmJob[]): SlurmJob[] {
  const out: SlurmJob[] = [];
  const pending = new Map<string, { readonly at: number; readonly tasks: number[] }>();
  for (const job of jobs) {
    if (job.state !== 'PENDING' || job.task === undefined || job.array === '' || job.id.endsWith(']')) out.push(job);
    else {
      const key = `${job.cluster} ${job.reason}`;
      const group = pending.get(key);
      if (group) group.tasks.push(job.task);
      else {
        pending.set(key, { at: out.length, tasks: [job.task] });
        out.push(job);
      }
    }
  }
  for (const { at, tasks } of pending.values()) {
    const job = out[at];
    const most = /%\d+$/.exec(job?.array ?? '')?.[0] ?? '';
    if (job && (tasks.length > 1 || most !== '')) out[at] = job.as(`${job.cluster}_[${spans(tasks)}${most}]`);
  }
  return out;
}
