import { hostname } from 'node:os';
import type { Gryphus } from '../../index.ts';
import { xmlText } from '../show/ads.ts';
import { Refused } from './options.ts';
import { isNamedSo, lettersOf, sgeJobs, type SgeName, sgeName } from './sge-jobs.ts';
import { type SgeGiven, sgeOptions } from './sge-options.ts';
import type { SlurmJob } from './slurm-job.ts';
import { ctime, moment } from './slurm-jobs.ts';

const SPEC = '-u= -s= -j= -g= -q= -xml -t -ne -ncb -r';

/** A line: a job, or the waiting tasks of an array. */
interface Row {
  readonly job: SlurmJob;
  readonly letters: string;
  /** Tasks of an array: `3`, `1-9:2`. */
  readonly tasks: string;
}

/** Lists as Grid Engine's qstat does; the exit status. */
export async function sgeQstat(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
): Promise<number> {
  const given = sgeOptions(SPEC, words);
  if (given.words.length > 0) throw new Refused(`invalid option argument "${given.words[0]}"`);
  if (!/^d?$/.test(given.values.get('-g') ?? ''))
    throw new Refused(`-g ${given.values.get('-g')} is not supported; -g d is`);
  const wanted = given.values.get('-j');
  if (wanted !== undefined) return described(gryphus, wanted, given.values.has('-xml'), write);
  const jobs = (await sgeJobs(gryphus, undefined, 'queue')).filter((job) => fits(job, given));
  const running = jobs.filter(({ state }) => state !== 'PENDING').map(rowOf);
  const waiting = jobs.filter(({ state }) => state === 'PENDING');
  const pending = given.values.has('-g') ? waiting.map(rowOf) : joined(waiting);
  if (given.values.has('-xml')) write(asXml(running, pending));
  else write(list([...running, ...pending]));
  return 0;
}

function fits(job: SlurmJob, { values }: SgeGiven): boolean {
  const letters = lettersOf(job);
  const users = values.get('-u')?.split(',');
  const states = values.get('-s');
  const queue = values.get('-q');
  if (letters === undefined) return false;
  if (queue !== undefined && queue !== queueOf(job)) return false;
  if (users !== undefined && !users.includes('*') && !users.includes(job.user)) return false;
  return states === undefined || states.split('').some((one) => isIn(one, letters));
}

/** Letters of `-s`: pending, running, suspended, held, any. */
function isIn(one: string, letters: string): boolean {
  switch (one) {
    case 'p':
      return letters.includes('q');
    case 'r':
      return letters === 'r' || letters === 'dr' || letters === 's';
    case 's':
      return letters === 's';
    case 'h':
      return letters.startsWith('h');
    case 'a':
      return true;
    default:
      return false;
  }
}

function rowOf(job: SlurmJob): Row {
  return { job, letters: lettersOf(job) ?? '', tasks: job.task === undefined ? '' : `${job.task}` };
}

/** Waiting tasks of an array in the same state are one line. */
function joined(jobs: readonly SlurmJob[]): Row[] {
  const groups = new Map<string, SlurmJob[]>();
  for (const job of jobs) {
    const key = job.task === undefined ? job.id : `${job.cluster} ${lettersOf(job)}`;
    const group = groups.get(key);
    if (group) group.push(job);
    else groups.set(key, [job]);
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    return [
      { ...rowOf(first), tasks: group.length === 1 ? rowOf(first).tasks : spans(group.map((one) => one.task ?? 0)) },
    ];
  });
}

/** `1-9:2`, `1-3:1,7`; two are not a range. */
function spans(tasks: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < tasks.length; ) {
    const first = tasks[i] ?? 0;
    const step = (tasks[i + 1] ?? first) - first;
    const beyond = tasks.findIndex((task, at) => at >= i && task !== first + (at - i) * step);
    const end = beyond < 0 ? tasks.length : beyond;
    const isRange = end - i > 2;
    parts.push(isRange ? `${first}-${tasks[end - 1]}:${step}` : `${first}`);
    i = isRange ? end : i + 1;
  }
  return parts.join(',');
}

const HEAD = `job-ID  prior   name       user         state submit/start at     queue                          slots ja-task-ID 
-----------------------------------------------------------------------------------------------------------------
`;

function list(rows: readonly Row[]): string {
  if (rows.length === 0) return '';
  return `${HEAD}${rows.map(line).join('')}`;
}

function line({ job, letters, tasks }: Row): string {
  const at = new Date((letters.includes('q') ? job.submitted : (job.started ?? job.submitted)) * 1000);
  const two = (n: number) => String(n).padStart(2, '0');
  const when = `${two(at.getMonth() + 1)}/${two(at.getDate())}/${at.getFullYear()} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${String(job.cluster).padStart(7)} ${priority(job)} ${job.name.slice(0, 10).padEnd(10)} ${job.user.slice(0, 12).padEnd(12)} ${letters.padEnd(5)} ${when} ${instanceOf(job).slice(0, 30).padEnd(30)} ${String(job.cpus).padStart(5)} ${tasks === '' ? '       ' : tasks}\n`;
}

function priority({ priority: given, state }: SlurmJob): string {
  if (state === 'PENDING' && given === 0) return '0.50000';
  return (0.5 + Math.max(-1023, Math.min(1024, given)) / 2048).toFixed(5);
}

function queueOf({ partition }: SlurmJob): string {
  return partition === '' ? 'all.q' : partition;
}

function instanceOf(job: SlurmJob): string {
  return job.node === '' ? '' : `${queueOf(job)}@${job.node}`;
}

function asXml(running: readonly Row[], pending: readonly Row[]): string {
  return `<?xml version='1.0'?>
<job_info  xmlns:xsd="http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd">
  <queue_info>
${running.map((row) => element(row, 'running')).join('')}  </queue_info>
  <job_info>
${pending.map((row) => element(row, 'pending')).join('')}  </job_info>
</job_info>
`;
}

function element({ job, letters, tasks }: Row, state: 'running' | 'pending'): string {
  const time =
    state === 'running'
      ? `<JAT_start_time>${moment(job.started ?? job.submitted, '')}</JAT_start_time>`
      : `<JB_submission_time>${moment(job.submitted, '')}</JB_submission_time>`;
  return `    <job_list state="${state}">
      <JB_job_number>${job.cluster}</JB_job_number>
      <JAT_prio>${priority(job)}</JAT_prio>
      <JB_name>${xmlText(job.name)}</JB_name>
      <JB_owner>${xmlText(job.user)}</JB_owner>
      <state>${letters}</state>
      ${time}
      <queue_name>${xmlText(state === 'running' ? instanceOf(job) : '')}</queue_name>
      <slots>${job.cpus}</slots>
${tasks === '' ? '' : `      <tasks>${tasks}</tasks>\n`}    </job_list>
`;
}

/** `qstat -j`: what is known of jobs that have not ended. */
async function described(
  gryphus: Gryphus,
  wanted: string,
  xml: boolean,
  write: (text: string) => void,
): Promise<number> {
  if (xml) throw new Refused('-xml is not supported together with -j');
  const names = wanted.split(',').map((one) => sgeName(one));
  const jobs = (await sgeJobs(gryphus, names, 'queue')).filter((job) => lettersOf(job) !== undefined);
  const missing = names.filter((name) => !jobs.some((job) => isNamedSo(name, job)));
  if (missing.length > 0)
    throw new Refused(`Following jobs do not exist: \n${missing.map((one: SgeName) => one.text).join('\n')}`);
  const seen = new Set<number>();
  for (const job of jobs) {
    if (seen.has(job.cluster)) continue;
    seen.add(job.cluster);
    write(`==============================================================\n${details(job).join('')}`);
  }
  return 0;
}

function details(job: SlurmJob): string[] {
  const ranges = job.array.replace(/%.*/, '');
  const rows: [string, string | undefined][] = [
    ['job_number', `${job.cluster}`],
    ['exec_file', job.command],
    ['submission_time', ctime(job.submitted)],
    ['owner', job.user],
    ['sge_o_workdir', job.directory],
    ['sge_o_host', hostname()],
    ['account', job.account || 'sge'],
    ['cwd', job.directory],
    ['notify', 'FALSE'],
    ['job_name', job.name],
    ['stdout_path_list', job.output === '' ? undefined : `NONE:NONE:${job.output}`],
    ['stderr_path_list', job.error === '' ? undefined : `NONE:NONE:${job.error}`],
    ['priority', `${job.priority}`],
    ['hard resource_list', job.limit === undefined ? undefined : `h_rt=${job.limit * 60}`],
    ['parallel environment', job.cpus > 1 ? `smp range: ${job.cpus}` : undefined],
    ['job-array tasks', ranges === '' ? undefined : /^\d+-\d+$/.test(ranges) ? `${ranges}:1` : ranges],
    ['scheduling info', job.reason === 'None' || job.reason === 'Priority' ? undefined : 'Job is in hold state'],
  ];
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [`${`${name}:`.padEnd(28)}${value}\n`]));
}
