import { BadValue, type Dialect, noMailAtBegin, type Option, type Wishes, type Written } from './model.ts';
import { slurmTime } from './slurm-times.ts';
import { atLeastOne, bytes, commaList, count, indices, slurmSeconds, VARIABLE } from './values.ts';

/** Passed on as written to a Slurm site, and a warning elsewhere. */
const SITE_VALUE =
  '--acctg-freq --bb --bbf --cluster-constraint -C --constraint --container --core-spec -S --cores-per-socket --cpu-freq --cpus-per-gpu --delay-boot -m --distribution -x --exclude --container-id --extra --gpu-bind --gpu-freq --gpus-per-socket --gres-flags --hint -L --licenses --mem-bind --mincpus --network -w --nodelist -F --nodefile --ntasks-per-core --ntasks-per-gpu --ntasks-per-socket --oom-kill-step --prefer --profile -q --qos --reservation --resv-ports --segment --sockets-per-node --switches --thread-spec --threads-per-core --tres-bind --tres-per-task --wait-all-nodes --wckey -B --extra-node-info --mcs-label --power --time-min';
const SITE_FLAG = '--contiguous -O --overcommit --reboot --spread-job --stepmgr --use-min-nodes -k --no-kill';

const OPTIONS: readonly Option[] = [
  { names: '-J --job-name', value: 'needed', fate: 'done', becomes: 'batch_name', take: (w, v) => void (w.name = v) },
  { names: '-t --time', value: 'needed', fate: 'done', becomes: 'batch_runtime; in the pool a job that runs longer is stopped and held', take: time },
  { names: '-n --ntasks', value: 'needed', fate: 'done', becomes: 'at a Slurm site its own word; elsewhere request_cpus, times the cores of a task', take: (w, v) => void (w.tasks = atLeastOne(v)) },
  { names: '-c --cpus-per-task', value: 'needed', fate: 'done', becomes: 'request_cpus', take: (w, v) => void (w.cpusPerTask = atLeastOne(v)) },
  { names: '-N --nodes', value: 'needed', fate: 'done', becomes: 'more than one: at a Slurm site its own word; elsewhere machine_count, with ranks_per_node for the tasks', take: nodes },
  { names: '--ntasks-per-node --tasks-per-node', value: 'needed', fate: 'done', becomes: 'as --ntasks, for each node', take: (w, v) => void (w.tasksPerNode = atLeastOne(v)) },
  { names: '--mem', value: 'needed', fate: 'done', becomes: 'request_memory', take: memory('node') },
  { names: '--mem-per-cpu', value: 'needed', fate: 'done', becomes: 'request_memory, times the cores', take: memory('cpu') },
  { names: '--mem-per-gpu', value: 'needed', fate: 'done', becomes: 'request_memory, times the GPUs', take: memory('gpu') },
  { names: '--tmp', value: 'needed', fate: 'done', becomes: 'request_disk, and at a Slurm site its own word', take: tmp },
  { names: '-G --gpus', value: 'needed', fate: 'done', becomes: 'request_gpus', take: gpus('job') },
  { names: '--gpus-per-node', value: 'needed', fate: 'done', becomes: 'request_gpus', take: gpus('node') },
  { names: '--gpus-per-task', value: 'needed', fate: 'done', becomes: 'request_gpus, times the tasks', take: gpus('task') },
  { names: '--gres', value: 'needed', fate: 'done', becomes: 'gpu: request_gpus, and at a Slurm site the type too; other names as a word for the site', take: gres },
  { names: '--exclusive', value: 'optional', fate: 'done', becomes: '+WholeNodes = true', take: (w) => void (w.wholeNode = true) },
  { names: '-s --oversubscribe --share', fate: 'site', becomes: '' },
  { names: '--propagate', value: 'optional', fate: 'site', becomes: '' },
  { names: '-a --array', value: 'needed', fate: 'done', becomes: 'one job for each index; %N: max_materialize', take: (w, v) => void (w.array = indices(v.replaceAll(/(?<=^|,)\[|\](?=,|%|$)/g, ''))) },
  { names: '-d --dependency', value: 'needed', fate: 'done', becomes: 'the jobs are held until those that they depend on have ended', take: (w, v) => void (w.dependency = v) },
  { names: '--kill-on-invalid-dep', value: 'needed', fate: 'done', becomes: 'a job whose dependency can no longer be met is removed', take: (w, v) => void (w.removeInvalid = yesNo(v)) },
  { names: '-o --output', value: 'needed', fate: 'done', becomes: 'output, with %A %a %j %J %x %u %b %n %t %s; %N is this machine, or the site', take: (w, v) => void (w.output = v) },
  { names: '-e --error', value: 'needed', fate: 'done', becomes: 'error, like --output', take: (w, v) => void (w.error = v) },
  { names: '-i --input', value: 'needed', fate: 'done', becomes: 'input', take: (w, v) => void (w.input = v) },
  { names: '--open-mode', value: 'needed', fate: 'done', becomes: 'truncate, which is what happens; append is refused where the output file may have been there before', take: openMode },
  { names: '--mail-type', value: 'needed', fate: 'done', becomes: 'notification; there is no mail when a job begins', take: mailType },
  { names: '--mail-user', value: 'needed', fate: 'done', becomes: 'notify_user', take: (w, v) => void (w.mailUser = v) },
  { names: '-D --chdir --workdir', value: 'needed', fate: 'done', becomes: 'initialdir', take: (w, path) => void (w.directory = { path }) },
  { names: '--export', value: 'needed', fate: 'done', becomes: 'getenv and environment; at a site on another machine ALL is left out', take: exported },
  { names: '-p --partition', value: 'needed', fate: 'done', becomes: 'batch_queue at a Slurm site; if a site has this name, the site', take: (w, v) => void (w.queue = v) },
  { names: '-A --account', value: 'needed', fate: 'done', becomes: 'batch_project at a site of the same system; elsewhere it is only shown', take: (w, v) => void (w.project = v) },
  { names: '-M --clusters', value: 'needed', fate: 'done', becomes: 'the site', take: (w, v) => void (w.site = v) },
  { names: '-H --hold', fate: 'done', becomes: 'hold = true', take: (w) => void (w.held = true) },
  { names: '-b --begin', value: 'needed', fate: 'done', becomes: 'at a Slurm site its own word; elsewhere the job is held until then', take: begin },
  { names: '--deadline', value: 'needed', fate: 'done', becomes: 'at a Slurm site its own word; elsewhere periodic_remove: the job is removed then, or earlier when its time limit no longer fits', take: deadline },
  { names: '--signal', value: 'needed', fate: 'done', becomes: 'at a Slurm site its own word; in the pool the signal goes so many seconds before the time limit to what the script has started, with `B:` to the script itself; elsewhere a warning', take: warning },
  { names: '--nice', value: 'optional', fate: 'done', becomes: 'priority, with the opposite sign', take: nice },
  { names: '--priority', value: 'needed', fate: 'site', becomes: '' },
  { names: '--comment', value: 'needed', fate: 'done', becomes: '+JobDescription', take: (w, v) => void (w.comment = v) },
  { names: '--requeue --no-requeue', fate: 'without', becomes: 'a job runs once; when a machine of the pool fails, it runs again' },
  { names: '--ignore-pbs -Q --quiet -v --verbose --parsable', fate: 'done', becomes: 'about the command only' },
  { names: '-W --wait', fate: 'without', becomes: 'use gryphus submit --wait' },
  { names: '--get-user-env', value: 'optional', fate: 'without', becomes: 'the program gets the environment that the submit describes' },
  { names: '--export-file', value: 'needed', fate: 'refused', becomes: 'name the variables with --export' },
  { names: '--uid --gid', value: 'needed', fate: 'refused', becomes: 'jobs run as you' },
  { names: '--test-only', fate: 'refused', becomes: 'use gryphus submit --dry-run' },
  ...SITE_VALUE.split(/ (?=--?\w)/).map((names): Option => ({ names, value: 'needed', fate: 'site', becomes: '' })),
  ...SITE_FLAG.split(' ').map((names): Option => ({ names, fate: 'site', becomes: '' })),
]; // biome-ignore format: a table

export const slurm: Dialect = {
  system: 'slurm',
  title: 'Slurm',
  prefix: /^#SBATCH(?:\s+|$)/,
  atTopOnly: true,
  long: true,
  options: OPTIONS,
  environment: 'all',
  startsIn: 'submit',
};

function time(wishes: Wishes, value: string): void {
  const seconds = slurmSeconds(value);
  if (seconds === undefined) delete wishes.seconds;
  else wishes.seconds = seconds;
}

/** `2`, `2-4`: at least and at most; the site decides, others get the least. */
function nodes(wishes: Wishes, value: string): void {
  const [, least = '', most] = /^(\d+)(?:-(\d+))?$/.exec(value) ?? [];
  wishes.nodes = atLeastOne(least);
  if (most !== undefined) wishes.siteWords.push(`--nodes=${value}`);
}

function memory(per: 'node' | 'cpu' | 'gpu') {
  return (wishes: Wishes, value: string, written: Written): void => {
    const size = bytes(value, 'm');
    if (size > 0) wishes.memory = { bytes: size, per };
    else {
      // It asks for all of a node's memory.
      wishes.siteOnly.push(written);
      wishes.siteWords.push('--mem=0');
    }
  };
}

function tmp(wishes: Wishes, value: string): void {
  wishes.diskBytes = bytes(value, 'm');
  wishes.siteWords.push(`--tmp=${value}`);
}

/** `4`, `a100:2`, and several apart by commas. */
function gpus(per: 'job' | 'node' | 'task') {
  return (wishes: Wishes, value: string): void => {
    wishes.gpus = commaList(value).reduce((sum, one) => sum + count(one.slice(one.lastIndexOf(':') + 1)), 0);
    wishes.gpusPer = per;
    if (value.includes(':')) wishes.siteWords.push(`--gpus${per === 'job' ? '' : `-per-${per}`}=${value}`);
  };
}

function gres(wishes: Wishes, value: string, written: Written): void {
  if (/^none$/i.test(value)) return;
  for (const one of commaList(value)) {
    const [name = '', ...rest] = one.split(':');
    const last = rest.at(-1);
    if (name !== 'gpu') {
      wishes.siteWords.push(`--gres=${value}`);
      wishes.siteOnly.push(written);
      return;
    }
    wishes.gpus = (wishes.gpus ?? 0) + (last !== undefined && /^\d+$/.test(last) ? Number(last) : 1);
    wishes.gpusPer = 'node';
    if (rest.length > 1) wishes.siteWords.push(`--gres=${value}`);
  }
}

function begin(wishes: Wishes, value: string): void {
  wishes.begin = slurmTime(value, Math.floor(Date.now() / 1000));
  wishes.siteWords.push(`--begin=${value}`);
}

function deadline(wishes: Wishes, value: string): void {
  const now = Math.floor(Date.now() / 1000);
  const at = slurmTime(value, now);
  if (at < now) throw new BadValue('it has passed');
  wishes.deadline = at;
  wishes.siteWords.push(`--deadline=${value}`);
}

/** `[R][B]:SIGNAL[@SECONDS]`; as in Slurm, a minute before if it is not said. */
function warning(wishes: Wishes, value: string, written: Written): void {
  const [, flags = '', name = '', at = '60'] = /^(?:([RB]{1,2}):)?(\w+)(?:@(\d{1,5}))?$/i.exec(value) ?? [];
  const known = /^\d+$/.test(name) ? SIGNALS[Number(name) - 1] : SIGNALS.find((one) => one === shortName(name));
  if (known === undefined || Number(at) > 65_535) throw new BadValue(`'${value}' is not SIGNAL@SECONDS`);
  wishes.warning = { ...written, signal: `SIG${known}`, seconds: Number(at), shell: /b/i.test(flags) };
  wishes.siteWords.push(`--signal=${value}`);
}

function shortName(name: string): string {
  return name.toUpperCase().replace(/^SIG/, '');
}

/** By their numbers on Linux, from 1. */
const SIGNALS =
  'HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ'.split(
    ' ',
  );

function openMode(wishes: Wishes, value: string, written: Written): void {
  delete wishes.append;
  if (/^t(runcate)?$/i.test(value)) return;
  if (/^a(ppend)?$/i.test(value)) {
    wishes.append = written;
    return;
  }
  throw new BadValue(`'${value}' is neither truncate nor append`);
}

const MAIL: Readonly<Record<string, NonNullable<Wishes['mail']>>> = {
  NONE: 'never',
  END: 'end',
  FAIL: 'error',
  REQUEUE: 'error',
  INVALID_DEPEND: 'error',
  TIME_LIMIT: 'error',
  ALL: 'always',
};

function mailType(wishes: Wishes, value: string, written: Written): void {
  const seen = new Set(commaList(value).map((one) => one.toUpperCase()));
  const known = [...seen].map(
    (one) => MAIL[one] ?? (/^(BEGIN|STAGE_OUT|ARRAY_TASKS|TIME_LIMIT_\d+)$/.test(one) ? '' : undefined),
  );
  if (known.includes(undefined)) throw new BadValue(`'${value}' is not a kind of mail`);
  if (seen.has('BEGIN')) noMailAtBegin(wishes, 'BEGIN', written);
  const wants = new Set(known.filter((one) => one !== ''));
  if (wants.has('always') || (wants.has('end') && wants.has('error'))) wishes.mail = 'always';
  else if (wants.has('end')) wishes.mail = 'end';
  else wishes.mail = wants.has('error') ? 'error' : 'never';
}

/** `ALL`, `NONE`, `NIL`, and names or assignments; a list without ALL takes only what it names. */
function exported(wishes: Wishes, value: string): void {
  const items = commaList(value);
  wishes.environment = items.some((one) => one.toUpperCase() === 'ALL') ? 'all' : 'none';
  for (const item of items) {
    if (/^(ALL|NONE|NIL)$/i.test(item)) continue;
    setVariable(wishes, item);
  }
}

/** `NAME=value`, or `NAME` with the submitter's value. */
export function setVariable(wishes: Wishes, item: string): void {
  const equals = item.indexOf('=');
  const name = equals < 0 ? item : item.slice(0, equals);
  if (!VARIABLE.test(name)) throw new BadValue(`'${name}' is not the name of a variable`);
  if (equals < 0) wishes.taken.add(name);
  else wishes.variables.set(name, item.slice(equals + 1));
}

function nice(wishes: Wishes, value: string): void {
  const text = value === '' ? '100' : value;
  if (!/^-?\d{1,10}$/.test(text)) throw new BadValue(`'${text}' is not a number`);
  wishes.priority = -Number(text);
}

function yesNo(value: string): boolean {
  if (/^y(es)?$/i.test(value)) return true;
  if (/^no?$/i.test(value)) return false;
  throw new BadValue(`'${value}' is neither yes nor no`);
}
