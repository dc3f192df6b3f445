import type { Gryphus } from '../../index.ts';
import { getopt, Refused } from './options.ts';
import type { SlurmJob } from './slurm-job.ts';
import { duration, elapsed, moment, namedJobs, slurmJobs, tres } from './slurm-jobs.ts';
import { sacctJson, slurmDocument } from './slurm-json.ts';
import { inClusters } from './slurm-targets.ts';
import { ownUser } from '../../util/own-user.ts';

const SPEC =
  '-X|--allocations -n|--noheader -P|--parsable2 -p|--parsable -o|--format= -j|--jobs= -u|--user= -a|--allusers -S|--starttime= -s|--state= --name= -D|--duplicates -M|--clusters= -L|--allclusters -l|--long -b|--brief --delimiter= --json -E|--endtime= -A|--accounts= -r|--partition= --noconvert --units= -T|--truncate -i|--nnodes= -N|--nodelist= -e|--helpformat -g|--gid= -q|--qos= -W|--wckeys= -x|--associations= -V|--version -v|--verbose';

interface Field {
  /** Negative: to the left. */
  readonly width: number;
  readonly value: (row: Row) => string;
}

/** A job, or its batch step. */
interface Row {
  readonly job: SlurmJob;
  readonly step: boolean;
  readonly now: number;
}

const FIELDS: Readonly<Record<string, Field>> = {
  JobID: { width: -12, value: ({ job, step }) => `${job.id}${step ? '.batch' : ''}` },
  JobIDRaw: { width: -12, value: ({ job, step }) => `${job.raw}${step ? '.batch' : ''}` },
  JobName: { width: 10, value: ({ job, step }) => (step ? 'batch' : job.name) },
  Partition: { width: 10, value: ({ job, step }) => (step ? '' : job.partition) },
  Account: { width: 10, value: ({ job }) => job.account },
  AllocCPUS: { width: 10, value: ({ job }) => (job.started === undefined ? '0' : `${job.cpus}`) },
  NCPUS: { width: 10, value: ({ job }) => (job.started === undefined ? '0' : `${job.cpus}`) },
  ReqCPUS: { width: 8, value: ({ job }) => `${job.cpus}` },
  ReqMem: { width: 10, value: ({ job, step }) => (step ? '' : `${job.memoryMb}M`) },
  State: { width: 10, value: stateText },
  ExitCode: { width: 8, value: ({ job }) => job.exit },
  DerivedExitCode: { width: 15, value: ({ step }) => (step ? '' : '0:0') },
  Elapsed: { width: 10, value: ({ job, now }) => duration(elapsed(job, now), true) },
  ElapsedRaw: { width: 10, value: ({ job, now }) => `${elapsed(job, now)}` },
  Submit: { width: 19, value: ({ job }) => moment(job.submitted, 'Unknown') },
  Start: { width: 19, value: ({ job }) => moment(job.started, 'Unknown') },
  End: { width: 19, value: ({ job }) => moment(job.ended, 'Unknown') },
  CPUTime: { width: 10, value: ({ job, now }) => duration(elapsed(job, now) * job.cpus, true) },
  CPUTimeRAW: { width: 10, value: ({ job, now }) => `${elapsed(job, now) * job.cpus}` },
  TotalCPU: { width: 10, value: ({ job }) => cpu(job.userCpu + job.systemCpu) },
  UserCPU: { width: 10, value: ({ job }) => cpu(job.userCpu) },
  SystemCPU: { width: 10, value: ({ job }) => cpu(job.systemCpu) },
  MaxRSS: { width: 10, value: ({ job, step }) => (step && job.residentKb > 0 ? `${job.residentKb}K` : '') },
  User: { width: 9, value: ({ job, step }) => (step ? '' : job.user) },
  NodeList: { width: 15, value: ({ job }) => job.node || 'None assigned' },
  NNodes: { width: 8, value: ({ job }) => `${job.nodes}` },
  WorkDir: { width: 20, value: ({ job, step }) => (step ? '' : job.directory) },
  Timelimit: {
    width: 10,
    value: ({ job, step }) => (step ? '' : job.limit === undefined ? 'UNLIMITED' : duration(job.limit * 60, true)),
  },
  TimelimitRaw: { width: 12, value: ({ job, step }) => (step || job.limit === undefined ? '' : `${job.limit}`) },
  Eligible: { width: 19, value: ({ job }) => moment(job.submitted, 'Unknown') },
  Priority: { width: 10, value: ({ job, step }) => (step ? '' : `${job.priority}`) },
  QOS: { width: 10, value: () => '' },
  UID: { width: 6, value: ({ step }) => (step ? '' : `${ownUser().uid}`) },
  GID: { width: 6, value: ({ step }) => (step ? '' : `${ownUser().gid}`) },
  AllocNodes: { width: 10, value: ({ job }) => (job.started === undefined ? '0' : `${job.nodes}`) },
  NTasks: { width: 8, value: ({ step }) => (step ? '1' : '') },
  ReqNodes: { width: 8, value: ({ job }) => `${job.nodes}` },
  AllocTRES: { width: 10, value: ({ job }) => (job.started === undefined ? '' : tres(job)) },
  ReqTRES: { width: 10, value: ({ job, step }) => (step ? '' : tres(job)) },
  AveRSS: { width: 10, value: ({ job, step }) => (step && job.residentKb > 0 ? `${job.residentKb}K` : '') },
  Suspended: { width: 10, value: () => '00:00:00' },
  Cluster: { width: 10, value: ({ job }) => job.partition },
  Comment: { width: 14, value: ({ job, step }) => (step ? '' : job.comment) },
  Reason: { width: 22, value: ({ job, step }) => (step ? '' : job.reason) },
};

/** `00:00.123`, `01:02:03`. */
function cpu(seconds: number): string {
  if (seconds >= 3600) return duration(Math.floor(seconds), true);
  const two = (n: number) => String(n).padStart(2, '0');
  const thousandths = String(Math.floor((seconds % 1) * 1000)).padStart(3, '0');
  return `${two(Math.floor(seconds / 60))}:${two(Math.floor(seconds % 60))}.${thousandths}`;
}

function stateText({ job, step }: Row): string {
  return job.state === 'CANCELLED' && !step ? `CANCELLED by ${ownUser().uid}` : job.state;
}

const USUAL = 'JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode';
const BRIEF = 'JobID,State,ExitCode';

export async function sacct(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const given = getopt(SPEC, words);
  const { values, words: rest } = given;
  const here = inClusters(given);
  if (rest.length > 0) throw new Refused(`Unrecognized option: ${rest[0]}`);
  if (values.has('helpformat')) {
    write(helpFormat());
    return 0;
  }
  if (values.has('long')) throw new Refused("option '--long' is not supported; name the fields with -o");
  for (const option of ['nnodes', 'nodelist', 'gid', 'qos', 'wckeys', 'associations', 'truncate', 'units'])
    if (values.has(option)) throw new Refused(`option '--${option}' is not supported`);
  const columns = (values.get('format') ?? process.env['SACCT_FORMAT'] ?? (values.has('brief') ? BRIEF : USUAL))
    .split(',')
    .map(columnOf);
  const jobs = values.get('jobs');
  const named = jobs === undefined || jobs === '' ? undefined : namedJobs(jobs);
  const names = values.get('name')?.split(',');
  const users = values.get('user')?.split(',');
  const states = values.get('state')?.toUpperCase().split(',');
  const accounts = values.get('accounts')?.split(',');
  const partitions = values.get('partition')?.split(',');
  const from = since(values.get('starttime'), named !== undefined);
  const to = values.has('endtime') ? since(values.get('endtime'), true) : Infinity;
  const now = Math.floor(Date.now() / 1000);
  const found: SlurmJob[] = [];
  for await (const job of slurmJobs(gryphus, named, 'everywhere')) {
    const fits =
      here(job) &&
      (names === undefined || names.includes(job.name)) &&
      (users === undefined || users.includes(job.user) || users.includes(`${ownUser().uid}`)) &&
      (states === undefined || states.includes(job.state) || states.includes(job.code)) &&
      (accounts === undefined || accounts.includes(job.account)) &&
      (partitions === undefined || partitions.includes(job.partition)) &&
      job.submitted <= to &&
      (job.ended ?? now) >= from;
    if (fits) found.push(job);
  }
  found.sort((a, b) => a.cluster - b.cluster || (a.task ?? 0) - (b.task ?? 0));
  if (values.has('json')) {
    write(
      slurmDocument(
        'openapi/dbv0.0.38',
        found.map((job) => sacctJson(job, now)),
      ),
    );
    return 0;
  }
  const rows = found.flatMap((job): Row[] => {
    const steps = !values.has('allocations') && job.started !== undefined;
    return [{ job, step: false, now }, ...(steps ? [{ job, step: true, now }] : [])];
  });
  const between = values.get('delimiter') ?? '|';
  const parsed = values.has('parsable2') || values.has('parsable');
  const end = values.has('parsable') ? between : '';
  const line = (texts: readonly string[]) =>
    parsed ? `${texts.join(between)}${end}` : columns.map(({ width }, i) => `${fit(texts[i] ?? '', width)} `).join('');
  const lines = rows.map((row) => line(columns.map(({ field }) => field.value(row))));
  if (!values.has('noheader')) {
    const rules = parsed ? [] : [columns.map(({ width }) => `${'-'.repeat(Math.abs(width))} `).join('')];
    lines.unshift(line(columns.map(({ name }) => name)), ...rules);
  }
  if (lines.length > 0) write(`${lines.join('\n')}\n`);
  return 0;
}

function columnOf(text: string): { readonly name: string; readonly field: Field; readonly width: number } {
  const [written = '', width] = text.split('%');
  const name = Object.keys(FIELDS).find((one) => one.toLowerCase() === written.toLowerCase());
  const field = name === undefined ? undefined : FIELDS[name];
  if (name === undefined || field === undefined) throw new Refused(`Invalid field requested: "${written}"`);
  return { name, field, width: width === undefined ? field.width : Number(width) };
}

/** Four names a line, as sacct lists them. */
function helpFormat(): string {
  const names = Object.keys(FIELDS).toSorted((a, b) => a.localeCompare(b, 'en'));
  const lines = Array.from({ length: Math.ceil(names.length / 4) }, (_, i) => names.slice(4 * i, 4 * i + 4));
  return `${lines
    .map((line) =>
      line
        .map((name) => name.padEnd(19))
        .join(' ')
        .trimEnd(),
    )
    .join('\n')}\n`;
}

/** A text that is too long ends in `+`. */
function fit(text: string, width: number): string {
  const most = Math.abs(width);
  const cut = text.length > most ? `${text.slice(0, most - 1)}+` : text;
  return width < 0 ? cut.padEnd(most) : cut.padStart(most);
}

/** Without jobs and a time, sacct shows today's. */
function since(text: string | undefined, named: boolean): number {
  if (text === undefined) return named ? 0 : new Date().setHours(0, 0, 0, 0) / 1000;
  const [, back, unit] = /^now-(\d+)(minutes?|hours?|days?|weeks?|seconds?)?$/.exec(text) ?? [];
  const seconds = { m: 60, h: 3600, d: 86_400, w: 604_800, s: 1 }[unit?.[0] ?? 's'] ?? 1;
  if (back !== undefined) return Date.now() / 1000 - Number(back) * seconds;
  if (text === 'now') return Date.now() / 1000;
  const at = Date.parse(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00` : text);
  if (Number.isNaN(at)) throw new Refused(`Invalid time specification (pos=0): ${text}`);
  return at / 1000;
}
