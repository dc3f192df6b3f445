import type { Gryphus } from '../../index.ts';
import { ownUser } from '../../util/own-user.ts';
import { type Given, getopt, Refused } from './options.ts';
import { columnsOf, fitted, helpFormat, type Row, type Unit } from './sacct-fields.ts';
import { windowOf } from './sacct-window.ts';
import type { SlurmJob } from './slurm-job.ts';
import { isNamed, type Named, namedJobs, slurmJobs } from './slurm-jobs.ts';
import { sacctJson, slurmDocument } from './slurm-json.ts';
import { inClusters } from './slurm-targets.ts';

/** Its options, for `getopt`. */
export const SPEC =
  '-X|--allocations -n|--noheader -P|--parsable2 -p|--parsable -o|--format=+ -j|--jobs=+ -u|--user=+ -a|--allusers -S|--starttime= -s|--state=+ --name=+ -D|--duplicates -M|--clusters= -L|--allclusters -l|--long -b|--brief --delimiter= --json -E|--endtime= -A|--accounts=+ -r|--partition=+ --noconvert --units= -T|--truncate -i|--nnodes= -N|--nodelist=+ -e|--helpformat -g|--gid= -q|--qos= -W|--wckeys= -x|--associations= -V|--version -v|--verbose';

/** The exit status. */
export async function sacct(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const given = getopt(SPEC, words);
  const { values, words: rest } = given;
  if (rest.length > 0) throw new Refused(['Unknown arguments:', ...rest.map((word) => ` ${word}`)].join('\n'));
  if (values.has('helpformat')) {
    write(helpFormat());
    return 0;
  }
  for (const option of ['qos', 'wckeys', 'associations'])
    if (values.has(option)) throw new Refused(`option '--${option}' is not supported`);
  const columns = columnsOf(formatBy(given));
  const jobs = values.get('jobs');
  const named = jobs
    ? namedJobs(jobs, (word) => new Refused(`Bad job/step specified: ${word}`, 1, 'fatal'))
    : undefined;
  const now = Math.floor(Date.now() / 1000);
  const asked = { start: values.get('starttime'), end: values.get('endtime'), states: values.get('state') };
  const window = windowOf({ ...asked, named: named !== undefined }, now);
  const wanted = wantedBy(given);
  const found: SlurmJob[] = [];
  for await (const job of slurmJobs(gryphus, named, 'everywhere')) if (wanted(job) && window.fits(job)) found.push(job);
  found.sort((a, b) => a.cluster - b.cluster || (a.task ?? 0) - (b.task ?? 0));
  if (values.has('json')) {
    const all = found.map((job) => sacctJson(job, now));
    write(slurmDocument('openapi/dbv0.0.38', all));
    return 0;
  }
  const shown = values.has('truncate') ? found.map((job) => job.within(window)) : found;
  const unit = unitBy(values.get('units'));
  const rows = shown.flatMap((job): Row[] =>
    stepsOf(job, named, values.has('allocations')).map((step) => ({ job, step, now, unit })),
  );
  const between = values.get('delimiter') ?? '|';
  const parsed = values.has('parsable2') || values.has('parsable');
  const end = values.has('parsable') ? between : '';
  const line = (texts: readonly string[], mark?: string) =>
    parsed
      ? `${texts.join(between)}${end}`
      : columns.map(({ width }, i) => `${fitted(texts[i] ?? '', width, mark)} `).join('');
  const lines = rows.map((row) => line(columns.map(({ value }) => value(row))));
  if (!values.has('noheader')) {
    const rules = parsed ? [] : [columns.map(({ width }) => `${'-'.repeat(Math.abs(width))} `).join('')];
    const names = columns.map(({ name }) => name);
    lines.unshift(line(names, ''), ...rules);
  }
  if (lines.length > 0) write(`${lines.join('\n')}\n`);
  return 0;
}

function formatBy({ values }: Given): Parameters<typeof columnsOf>[0] {
  const given = values.get('format');
  if (given !== undefined) return { given };
  if (values.has('long')) return 'long';
  if (values.has('brief')) return 'brief';
  const { SACCT_FORMAT } = process.env;
  return SACCT_FORMAT === undefined ? 'usual' : { given: SACCT_FORMAT };
}

function unitBy(text: string | undefined): Unit | undefined {
  if (text === undefined) return undefined;
  const unit = (['K', 'M', 'G', 'T', 'P'] as const).find((one) => one === text.toUpperCase());
  if (unit === undefined) throw new Refused(`Invalid unit type '${text}'. Possible options are 'KMGTP'`);
  return unit;
}

/** What the options about users, accounts, partitions and machines leave. */
function wantedBy(given: Given): (job: SlurmJob) => boolean {
  const { values } = given;
  const here = inClusters(given);
  const list = (name: string) => values.get(name)?.split(',');
  const { username, uid, gid } = ownUser();
  const [users, groups, nodes] = [list('user'), list('gid'), list('nodelist')];
  const one = (name: string, of: (job: SlurmJob) => string) => {
    const some = list(name);
    return (job: SlurmJob) => some === undefined || some.includes(of(job));
  };
  const [least = 0, most = values.has('nnodes') ? least : Infinity] = (values.get('nnodes') ?? '')
    .split('-')
    .map(Number);
  const others = [
    one('name', ({ name }) => name),
    one('accounts', ({ account }) => account),
    one('partition', ({ partition }) => partition),
  ];
  return (job) =>
    here(job) &&
    others.every((fits) => fits(job)) &&
    (users === undefined || users.includes(job.user) || (job.user === username && users.includes(`${uid}`))) &&
    (groups === undefined || groups.includes(`${gid}`)) &&
    (nodes === undefined || nodes.includes(job.node)) &&
    least <= job.nodes &&
    job.nodes <= most;
}

/** The rows of a job, of which `true` is its batch step. */
function stepsOf(job: SlurmJob, named: readonly Named[] | undefined, allocations: boolean): boolean[] {
  const all = job.started === undefined ? [false] : [false, true];
  const ours = named?.filter((one) => isNamed(job, [one]));
  const steps = ours === undefined || ours.some(({ step }) => step === undefined);
  const some = steps ? all : all.filter((step) => step && ours.some((one) => one.step === 'batch'));
  return allocations ? some.filter((step) => !step) : some;
}
