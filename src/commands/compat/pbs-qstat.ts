import { hostname } from 'node:os';
import type { Gryphus } from '../../index.ts';
import { type Given, getopt, Refused } from './options.ts';
import {
  byCluster,
  exitStatus,
  FINISHED,
  isFinished,
  isOf,
  letterOf,
  pbsId,
  type PbsName,
  pbsName,
  SERVER,
  UNKNOWN_JOB,
} from './pbs-jobs.ts';
import type { SlurmJob } from './slurm-job.ts';
import { ctime, duration, elapsed } from './slurm-jobs.ts';

const SPEC = '-f -x -H -t -w -a -i -r -n -s -1 -u= -F=';

/** A line of the list: a job, or an array as one. */
interface Row {
  readonly id: string;
  readonly job: SlurmJob;
  readonly letter: string;
  /** Of an array: all of its jobs that are known. */
  readonly jobs?: readonly SlurmJob[];
}

/** Lists as PBS' qstat does; the exit status. */
export async function pbsQstat(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
  warn: (text: string) => void,
): Promise<number> {
  const given = getopt(SPEC, words);
  const { values, words: ids } = given;
  const format = values.get('F');
  if (format !== undefined && format !== 'json') throw new Refused(`-F ${format} is not supported; -F json is`, 2);
  const history = values.has('x') || values.has('H');
  const names = ids.length === 0 ? undefined : ids.map(pbsName);
  const jobs = await byCluster(gryphus, names, names !== undefined || history ? 'everywhere' : 'queue');
  const rows: Row[] = [];
  let status = 0;
  for (const name of names ?? []) {
    const own = (jobs.get(name.cluster) ?? []).filter((job) => isOf(name, job));
    const live = history ? own : own.filter((job) => !isFinished(job));
    if (own.length === 0) {
      warn(`qstat: Unknown Job Id ${name.text}\n`);
      status = UNKNOWN_JOB;
    } else if (live.length === 0) {
      warn(`qstat: ${name.text} Job has finished, use -x or -H to obtain historical job information\n`);
      status = FINISHED;
    } else rows.push(...rowsOf(own, given, name));
  }
  if (names === undefined)
    for (const own of jobs.values()) rows.push(...rowsOf(own, given).filter(({ letter }) => history || letter !== 'F'));
  const wanted = rows.filter((row) => fits(row, given));
  const now = Math.floor(Date.now() / 1000);
  if (format === 'json') write(json(wanted, values.has('f'), now));
  else if (values.has('f')) for (const row of wanted) write(full(row, values.has('w'), now));
  else if (isAlternative(given)) write(alternative(wanted, now));
  else write(list(wanted, now));
  return status;
}

/** An array is one line, unless its jobs are asked for. */
function rowsOf(jobs: readonly SlurmJob[], { values }: Given, name?: PbsName): Row[] {
  const one = (job: SlurmJob): Row => ({ id: pbsId(job.cluster, job.task), job, letter: letterOf(job) });
  const [first] = jobs;
  const some = typeof name?.tasks === 'object';
  if (first === undefined || some || (first.array === '' && name?.tasks !== 'whole')) return jobs.map(one);
  const letters = new Set(jobs.map(letterOf));
  const begun = jobs.some(({ starts, started }) => starts > 0 || started !== undefined);
  const letter = letters.size === 1 && (letters.has('F') || !begun) ? (letterOf(first) ?? 'Q') : 'B';
  const whole = { id: pbsId(first.cluster, 'array'), job: first, letter, jobs };
  if (!values.has('t')) return [whole];
  // A job that has ended is "expired" until its array has ended.
  const part = (row: Row): Row => (letter !== 'F' && row.letter === 'F' ? { ...row, letter: 'X' } : row);
  return [whole, ...jobs.map((job) => part(one(job)))];
}

function fits({ job, letter }: Row, { values }: Given): boolean {
  const users = values.get('u')?.split(',');
  if (users !== undefined && !users.includes(job.user)) return false;
  if (values.has('r') && !'RSEB'.includes(letter)) return false;
  return !values.has('i') || 'QHW'.includes(letter);
}

function isAlternative({ values }: Given): boolean {
  return ['a', 'i', 'r', 'n', 's', 'u'].some((one) => values.has(one));
}

const HEAD = `Job id            Name             User              Time Use S Queue
----------------  ---------------- ----------------  -------- - -----
`;

function list(rows: readonly Row[], now: number): string {
  if (rows.length === 0) return '';
  const lines = rows.map(
    ({ id, job, letter, jobs }) =>
      `${starred(id, 17).padEnd(17)} ${starred(job.name, 16).padEnd(16)} ${starred(job.user, 16).padEnd(16)}  ${timeUse(job, jobs !== undefined, now).padStart(8)} ${letter} ${queueOf(job).padEnd(16)}\n`,
  );
  return `${HEAD}${lines.join('')}`;
}

/** Longer text ends with an asterisk. */
function starred(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}*` : text;
}

function timeUse(job: SlurmJob, isArray: boolean, now: number): string {
  if (isArray || job.started === undefined) return '0';
  const used = job.userCpu + job.systemCpu;
  return duration(Math.round(Math.min(used, elapsed(job, now) * job.cpus)), true);
}

function queueOf({ partition }: SlurmJob): string {
  return partition === '' ? 'workq' : partition;
}

const ALTERNATIVE = `
${SERVER}: 
                                                            Req'd  Req'd   Elap
Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time
--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----
`;

function alternative(rows: readonly Row[], now: number): string {
  if (rows.length === 0) return '';
  const lines = rows.map(({ id, job, letter }) => {
    const memory = job.memoryMb > 0 ? `${job.memoryMb}mb` : '-- ';
    const asked = job.limit === undefined ? '-- ' : clock(job.limit * 60);
    const ran = job.started === undefined ? ' -- ' : clock(elapsed(job, now));
    return `${starred(id, 15).padEnd(15)} ${starred(job.user, 8).padEnd(8)} ${starred(queueOf(job), 8).padEnd(8)} ${starred(job.name, 10).padEnd(10)} ${'--'.padStart(6)} ${'1'.padStart(3)} ${String(job.cpus).padStart(3)} ${memory.padStart(6)} ${asked.padStart(5)} ${letter} ${ran.padStart(5)}\n`;
  });
  return `${ALTERNATIVE}${lines.join('')}`;
}

/** `HH:MM`. */
function clock(seconds: number): string {
  const two = (n: number) => String(n).padStart(2, '0');
  return `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}`;
}

type Value = string | number | { readonly [name: string]: string | number };

/** The attributes of `qstat -f`, in PBS' order. */
function attributes({ job, letter, jobs }: Row, now: number): [name: string, value: Value][] {
  const ran = job.started !== undefined && jobs === undefined;
  const host = hostname();
  const status = jobs === undefined ? exitStatus(job) : undefined;
  const path = (file: string) =>
    file === '' ? `${host}:/dev/null` : `${host}:${file.startsWith('/') ? file : `${job.directory}/${file}`}`;
  const rows: [string, Value | undefined][] = [
    ['Job_Name', job.name],
    ['Job_Owner', `${job.user}@${host}`],
    [
      'resources_used',
      ran
        ? {
            cput: duration(Math.round(job.userCpu + job.systemCpu), true),
            mem: `${job.residentKb}kb`,
            ncpus: job.cpus,
            walltime: duration(elapsed(job, now), true),
          }
        : undefined,
    ],
    ['job_state', letter],
    ['queue', queueOf(job)],
    ['server', SERVER],
    ['Account_Name', job.account || undefined],
    ['array', jobs === undefined ? undefined : 'True'],
    ['array_state_count', jobs === undefined ? undefined : counts(jobs)],
    ['array_indices_submitted', jobs === undefined ? undefined : job.array.replace(/%.*/, '')],
    ['ctime', ctime(job.submitted)],
    ['depend', job.dependency || undefined],
    ['Error_Path', path(job.error)],
    ['exec_host', ran && job.node !== '' ? `${job.node}/0` : undefined],
    ['Hold_Types', letter === 'H' ? 'u' : 'n'],
    ['mtime', ctime(job.ended ?? job.started ?? job.submitted)],
    ['Output_Path', path(job.output)],
    ['Priority', job.priority],
    ['qtime', ctime(job.submitted)],
    [
      'Resource_List',
      {
        ...(job.memoryMb > 0 ? { mem: `${job.memoryMb}mb` } : {}),
        ncpus: job.cpus,
        nodect: 1,
        select: `1:ncpus=${job.cpus}`,
        ...(job.limit === undefined ? {} : { walltime: duration(job.limit * 60, true) }),
      },
    ],
    ['stime', job.started === undefined ? undefined : ctime(job.started)],
    ['Variable_List', { PBS_O_LOGNAME: job.user, PBS_O_QUEUE: queueOf(job) }],
    ['comment', comment(job)],
    ['etime', ctime(job.submitted)],
    ['run_count', ran ? job.starts : undefined],
    ['Exit_status', status],
    ['Submit_arguments', job.command],
  ];
  return rows.flatMap(([name, value]): [string, Value][] => (value === undefined ? [] : [[name, value]]));
}

function comment(job: SlurmJob): string | undefined {
  if (job.state === 'PENDING')
    return job.reason === 'Priority' ? 'Not Running: see gryphus why' : `Not Running: ${job.reason}`;
  if (!isFinished(job)) return undefined;
  return job.state === 'COMPLETED' ? 'and finished' : `and failed: ${job.state}`;
}

function counts(jobs: readonly SlurmJob[]): string {
  const of = (letters: string) => jobs.filter((job) => letters.includes(letterOf(job))).length;
  return `Queued:${of('QH')} Running:${of('RS')} Exiting:${of('E')} Expired:${of('F')} `;
}

/** Values are broken after commas where a line would become longer than 78 columns, unless `wide`. */
function full(row: Row, wide: boolean, now: number): string {
  const lines = attributes(row, now).flatMap(([name, value]) => {
    if (typeof value !== 'object') return [broken(name, String(value), wide)];
    if (name === 'Variable_List')
      return [
        broken(
          name,
          Object.entries(value)
            .map(([key, one]) => `${key}=${one}`)
            .join(','),
          wide,
        ),
      ];
    return Object.entries(value).map(([key, one]) => broken(`${name}.${key}`, String(one), wide));
  });
  return `Job Id: ${row.id}\n${lines.map((line) => `    ${line}\n`).join('')}\n`;
}

function broken(name: string, value: string, wide: boolean): string {
  const oneLine = value.replaceAll('\n', '\\n');
  if (wide) return `${name} = ${oneLine}`;
  let column = name.length + 7;
  return oneLine.split(',').reduce((text, part, i) => {
    const fits = column + part.length + 1 < 79;
    column = fits ? column + part.length + 1 : part.length + 9;
    return `${text}${i === 0 ? '' : ','}${fits || i === 0 ? '' : '\n\t'}${part}`;
  }, `${name} = `);
}

function json(rows: readonly Row[], whole: boolean, now: number): string {
  if (!whole) throw new Refused('-F json needs -f', 2);
  const document = {
    timestamp: now,
    pbs_version: '23.06.06',
    pbs_server: SERVER,
    ...(rows.length === 0
      ? {}
      : { Jobs: Object.fromEntries(rows.map((row) => [row.id, Object.fromEntries(attributes(row, now))])) }),
  };
  return `${JSON.stringify(document, undefined, '\t')}\n`;
}
