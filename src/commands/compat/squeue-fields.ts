import type { AdText } from '../../index.ts';
import { Refused } from './options.ts';
import type { SlurmJob } from './slurm-job.ts';
import { duration, elapsed, endsAt, moment, outputPaths, tres } from './slurm-jobs.ts';

/** What squeue shows of a job. */
export interface Field {
  readonly head: string;
  readonly value: (job: SlurmJob, now: number) => string;
}

/** Letter of `--format`, names of `--Format` (squeue's manual), heading, value. A dash: no letter. */
const TABLE: readonly (readonly [letter: string, names: string, head: string, value: Field['value']])[] = [
  ['a', 'account', 'ACCOUNT', ({ account }) => account || '(null)'],
  ['A', 'jobid', 'JOBID', ({ raw }) => `${raw}`],
  ['b', 'gres tres-per-node', 'TRES_PER_NODE', ({ gpus }) => (gpus === 0 ? 'N/A' : `gres:gpu:${gpus}`)],
  ['B', 'batchhost', 'EXEC_HOST', ({ node }) => node || 'n/a'],
  ['c', 'mincpus', 'MIN_CPUS', ({ cpus }) => `${cpus}`],
  ['C', 'numcpus', 'CPUS', ({ cpus }) => `${cpus}`],
  ['d', 'mintmpdisk', 'MIN_TMP_DISK', () => '0'],
  ['D', 'numnodes', 'NODES', ({ nodes }) => `${nodes}`],
  ['e', 'endtime', 'END_TIME', (job) => moment(endsAt(job), 'N/A')],
  ['E', 'dependency', 'DEPENDENCY', ({ dependency }) => dependency || '(null)'],
  ['f', 'feature', 'FEATURES', () => '(null)'],
  ['F', 'arrayjobid', 'ARRAY_JOB_ID', ({ cluster }) => `${cluster}`],
  ['G', 'groupid', 'GROUP', () => `${process.getgid?.() ?? 0}`],
  ['h', 'oversubscribe', 'OVER_SUBSCRIBE', () => 'OK'],
  ['i', 'jobarrayid', 'JOBID', ({ id }) => id],
  ['j', 'name', 'NAME', ({ name }) => name],
  ['k', 'comment', 'COMMENT', ({ comment }) => comment || '(null)'],
  ['K', 'arraytaskid', 'ARRAY_TASK_ID', ({ task }) => (task === undefined ? 'N/A' : `${task}`)],
  ['l', 'timelimit', 'TIME_LIMIT', (job) => limit(job)],
  ['L', 'timeleft', 'TIME_LEFT', (job, now) => left(job, now)],
  ['m', 'minmemory', 'MIN_MEMORY', ({ memoryMb }) => `${memoryMb}M`],
  ['M', 'timeused', 'TIME', (job, now) => duration(elapsed(job, now))],
  ['n', 'reqnodes', 'REQ_NODES', () => ''],
  ['N', 'nodelist', 'NODELIST', ({ node }) => node],
  ['o', 'command', 'COMMAND', ({ command }) => command || '(null)'],
  ['p', 'priority', 'PRIORITY', ({ priority }) => `${priority}`],
  ['P', 'partition', 'PARTITION', ({ partition }) => partition],
  ['q', 'qos', 'QOS', () => '(null)'],
  ['Q', 'prioritylong', 'PRIORITY', ({ priority }) => `${priority}`],
  ['r', 'reason', 'REASON', ({ reason }) => reason],
  ['R', 'reasonlist', 'NODELIST(REASON)', ({ node, state, reason }) => (state === 'PENDING' ? `(${reason})` : node)],
  ['S', 'starttime', 'START_TIME', ({ started, begin }) => moment(started ?? begin, 'N/A')],
  ['t', 'statecompact', 'ST', ({ code }) => code],
  ['T', 'state', 'STATE', ({ state }) => state],
  ['u', 'username', 'USER', ({ user }) => user],
  ['U', 'userid', 'UID', () => `${process.getuid?.() ?? 0}`],
  ['v', 'reservation', 'RESERVATION', () => '(null)'],
  ['V', 'submittime', 'SUBMIT_TIME', ({ submitted }) => moment(submitted, 'N/A')],
  ['w', 'wckey', 'WCKEY', () => '(null)'],
  ['W', 'licenses', 'LICENSES', () => '(null)'],
  ['x', '-', 'EXC_NODES', () => ''],
  // When and where a job will start nobody knows before it does.
  ['Y', 'schednodes', 'SCHEDNODES', () => '(null)'],
  ['y', 'nice', 'NICE', () => '0'],
  ['Z', 'workdir', 'WORK_DIR', ({ directory }) => directory],
  ['-', 'batchflag', 'BATCH_FLAG', () => '1'],
  ['-', 'cluster', 'CLUSTER', ({ partition }) => partition],
  ['-', 'cpus-per-task', 'CPUS_PER_TASK', ({ cpus }) => `${cpus}`],
  ['-', 'deadline', 'DEADLINE', () => 'N/A'],
  ['-', 'eligibletime', 'ELIGIBLE_TIME', ({ submitted }) => moment(submitted, 'N/A')],
  ['-', 'exit_code', 'EXIT_CODE', ({ exit }) => `${Number(exit.split(':')[0]) * 256 + Number(exit.split(':')[1])}`],
  ['-', 'numtasks', 'TASKS', () => '1'],
  ['-', 'restartcnt', 'RESTART_COUNT', ({ starts }) => `${Math.max(0, starts - 1)}`],
  ['-', 'stdin', 'STDIN', () => '/dev/null'],
  ['-', 'stdout', 'STDOUT', (job) => outputPaths(job).out],
  ['-', 'stderr', 'STDERR', (job) => outputPaths(job).error],
  ['-', 'tres-alloc tres', 'TRES_ALLOC', tres],
];

const BY_LETTER = new Map<string, Field>();
const BY_NAME = new Map<string, Field>();
for (const [letter, names, head, value] of TABLE) {
  if (letter !== '-') BY_LETTER.set(letter, { head, value });
  for (const name of names.split(' ')) if (name !== '-') BY_NAME.set(name, { head, value });
}

/** Those that need no more than LISTED_ATTRIBUTES (slurm-job.ts). */
const LISTED: ReadonlySet<Field | undefined> = new Set(
  'iAFKjtTuPMDRNro'.split('').map((letter) => BY_LETTER.get(letter)),
);

export function isListed({ field }: Column): boolean {
  return field === undefined || LISTED.has(field);
}

export function fieldOf(letter: string): Field | undefined {
  return BY_LETTER.get(letter);
}

function limit({ limit: minutes }: SlurmJob): string {
  return minutes === undefined ? 'UNLIMITED' : duration(minutes * 60);
}

function left(job: SlurmJob, now: number): string {
  return job.limit === undefined ? 'UNLIMITED' : duration(Math.max(0, job.limit * 60 - elapsed(job, now)));
}

export interface Column {
  readonly text: string;
  readonly field?: Field;
  /** 0: as wide as the value is. */
  readonly width: number;
  readonly right: boolean;
}

/** `--format`: `%[.][width]field` and the text between. */
export function columnsOf(format: string): Column[] {
  const columns: Column[] = [];
  for (const [whole, right, width, letter, text] of format.matchAll(/%(\.?)(\d*)([A-Za-z])|([^%]+|%)/g)) {
    if (letter === undefined) {
      columns.push({ text: text ?? '', width: 0, right: false });
      continue;
    }
    const field = BY_LETTER.get(letter);
    if (field === undefined) throw new Refused(`the format field ${whole} is not supported`);
    columns.push({ text: '', field, width: Number(width || 0), right: right === '.' });
  }
  return columns;
}

/** Without a width, a column of `--Format` has this. */
const USUAL_WIDTH = 20;

/** `--Format`: `name[:[.][width]]`, apart by commas; a suffix after the width is refused. */
export function longColumnsOf(format: string): Column[] {
  return format.split(',').map((one) => {
    const [, name = '', right = '', width = ''] = /^([\w-]*)(?::(\.?)(\d*))?$/.exec(one.trim()) ?? [];
    const field = BY_NAME.get(name.toLowerCase());
    if (field === undefined) throw new Refused(`Invalid job format specification: ${one}`);
    return { text: '', field, width: width === '' ? USUAL_WIDTH : Number(width), right: right === '.' };
  });
}

/** What an ad alone does not tell. */
const OF_ID: ReadonlySet<Field['value'] | undefined> = new Set(
  'iAFK'.split('').map((one) => BY_LETTER.get(one)?.value),
);

/** The lines of jobs of one look; what the same ad gives the same value is made once. */
export function linesOf(columns: readonly Column[], jobs: readonly SlurmJob[], now: number): string[] {
  const known = new Map<AdText, Map<Field, string>>();
  return jobs.map((job) => {
    let values = known.get(job.ad);
    if (!values) known.set(job.ad, (values = new Map()));
    const same = values;
    return lineOf(columns, (field) => {
      if (OF_ID.has(field.value)) return field.value(job, now);
      let value = same.get(field);
      if (value === undefined) same.set(field, (value = field.value(job, now)));
      return value;
    });
  });
}

export function lineOf(columns: readonly Column[], value: (field: Field) => string): string {
  let line = '';
  for (const { text, field, width, right } of columns) {
    const given = field === undefined ? text : value(field);
    if (field === undefined || width === 0) line += given;
    else {
      const cut = given.slice(0, width);
      line += right ? cut.padStart(width) : cut.padEnd(width);
    }
  }
  return line;
}
