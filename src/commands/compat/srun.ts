import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { shellQuote, shellWords } from '../../util/shell-quote.ts';
import { getopt, Refused } from './options.ts';

const SPEC =
  '-n|--ntasks= -N|--nodes= -c|--cpus-per-task= -J|--job-name= -u|--unbuffered -Q|--quiet -v|--verbose --mem= --mem-per-cpu= --cpu-bind= --mpi= --exclusive=? --exact --overlap -K|--kill-on-bad-exit=? --export= --ntasks-per-node= --gres= -G|--gpus=';

/** Where a task of a step runs. */
interface Task {
  readonly rank: number;
  readonly node: number;
  /** Among the tasks of its node. */
  readonly local: number;
}

/**
 * Within a job, runs the command once for each task, on the job's machines; the highest exit status. What a task asks for
 * (cores, memory, binding) says nothing there: all of them share what the job has.
 */
export async function srun(words: readonly string[]): Promise<number> {
  if (process.env['SLURM_JOB_ID'] === undefined) srunAsRun(words);
  const { values, words: command } = getopt(SPEC, words, true);
  if (command.length === 0) throw new Refused('No command given to execute.', 1, 'fatal');
  if (!['ALL', undefined].includes(values.get('export'))) throw new Refused('--export: only ALL is supported');
  const tasks = stepOf(values, process.env);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.removeAllListeners(signal);
  return Math.max(...(await Promise.all(tasks.map((task) => run(command, task, tasks)))));
}

/** The tasks of a step, block by block: each node gets its first ones before the next node does. */
function stepOf(values: ReadonlyMap<string, string>, env: NodeJS.ProcessEnv): Task[] {
  const number = (name: string, text: string | undefined): number | undefined => {
    if (text === undefined) return undefined;
    if (!/^[1-9]\d{0,6}$/.test(text)) throw new Refused(`Invalid numeric value "${text}" for --${name}.`);
    return Number(text);
  };
  const given = (name: string) => number(name, values.get(name));
  const known = (name: string) => number(name, env[name]);
  const there = known('SLURM_NNODES') ?? 1;
  const perNode =
    given('ntasks-per-node') ?? (given('nodes') === undefined ? undefined : known('SLURM_NTASKS_PER_NODE'));
  const asked =
    given('ntasks') ?? (perNode === undefined && given('nodes') === undefined ? known('SLURM_NTASKS') : undefined);
  const nodes = given('nodes') ?? Math.min(there, asked ?? there);
  if (nodes > there)
    throw new Refused(`Unable to create step: the job has ${there === 1 ? 'one node' : `${there} nodes`}`);
  const all = asked ?? nodes * (perNode ?? 1);
  return Array.from({ length: Math.min(nodes, all) }, (_, node) => node).flatMap((node) => {
    const [from, to] = [node, node + 1].map((n) => n * Math.floor(all / nodes) + Math.min(n, all % nodes));
    return Array.from({ length: (to ?? 0) - (from ?? 0) }, (_, local) => ({ rank: (from ?? 0) + local, node, local }));
  });
}

const OUTSIDE =
  '-n|--ntasks= -N|--nodes= -c|--cpus-per-task= --mem= -t|--time= -p|--partition= -M|--clusters= -G|--gpus= --gres= --export= -u|--unbuffered -Q|--quiet -v|--verbose';

/** The words of `gryphus run` that do what srun does outside a job: one task, whose output is shown. */
export function srunAsRun(words: readonly string[]): string[] {
  const { values, words: command } = getopt(OUTSIDE, words, true);
  if (command.length === 0) throw new Refused('No command given to execute.');
  for (const option of ['ntasks', 'nodes'])
    if (Number(values.get(option) ?? 1) !== 1)
      throw new Refused(`--${option}=${values.get(option)}: outside a job srun starts one task; see sbatch`);
  if (!['ALL', undefined].includes(values.get('export'))) throw new Refused('--export: only ALL is supported');
  const [cluster, partition] = [values.get('clusters'), values.get('partition')];
  const given = {
    // A site is a cluster and a partition; within a named site, a partition is one of its own.
    '--site': cluster ?? partition,
    '--queue': cluster === undefined ? undefined : partition,
    '--cpus': values.get('cpus-per-task'),
    '--memory': values.get('mem'),
    '--gpus': gpusOf(values.get('gpus'), values.get('gres')),
    '--time': values.has('time') ? timeOf(values.get('time') ?? '') : undefined,
  };
  const options = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
  return ['run', ...options, '--', ...command];
}

function gpusOf(gpus: string | undefined, gres: string | undefined): string | undefined {
  const text = gpus ?? gres;
  if (text === undefined) return undefined;
  const [, count = '1'] =
    (gpus === undefined ? /^gpu(?:(?::[A-Za-z]\w*)?:(\d+)|:[A-Za-z]\w*)?$/ : /^(?:\w+:)?(\d+)$/).exec(text) ?? [];
  if (!text.startsWith('gpu') && gpus === undefined) throw new Refused(`--gres=${text}: only gpu is supported`);
  return count;
}

/** Slurm's `5` are minutes, and `2-12` days and hours; `run` knows the other forms. */
function timeOf(time: string): string {
  if (/^\d+$/.test(time)) return `${time}m`;
  return /^\d+-\d+(:\d+)?$/.test(time) ? `${time}${time.includes(':') ? '' : ':00'}:00` : time;
}

async function run(command: readonly string[], task: Task, tasks: readonly Task[]): Promise<number> {
  const { rank, node, local } = task;
  const own = {
    SLURM_PROCID: rank,
    SLURM_LOCALID: local,
    SLURM_NODEID: node,
    SLURM_NTASKS: tasks.length,
    SLURM_NPROCS: tasks.length,
    SLURM_STEP_ID: 0,
    SLURM_STEP_NUM_NODES: new Set(tasks.map((one) => one.node)).size,
  };
  const env = {
    ...process.env,
    ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name, String(value)])),
  };
  const rsh = process.env['GRYPHUS_RSH'];
  const away = rsh !== undefined && `${node}` !== process.env['_CONDOR_PROCNO'];
  const [program = '', ...args] = away ? [rsh, `node${node}`, 'exec /bin/sh'] : command;
  // Only the first task has standard input.
  const stdin = away ? 'pipe' : rank === 0 ? 'inherit' : 'ignore';
  const child = spawn(program, args, { env, stdio: [stdin, 'inherit', 'inherit'] });
  child.stdin?.on('error', () => undefined).end(away ? remotely(command, env) : '');
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((done, fail) => {
    child.once('error', ({ message }) => fail(new Refused(`execve(): ${program}: ${message}`, 2)));
    child.once('close', (code, signal) => done(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}

/** Variables that a node has of its own. */
const OF_NODE =
  /^(_CONDOR_(PROCNO|SLOT|SCRATCH_DIR|JOB_IWD|JOB_AD|MACHINE_AD|CHIRP_CONFIG)|GRYPHUS_(KEY|GANG|RSH|LAUNCHERS)|PWD|OLDPWD|_)$/;

/** What a shell at another node reads: no variable is on a command line, where others could see it. */
function remotely(command: readonly string[], env: NodeJS.ProcessEnv): string {
  const variables = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || OF_NODE.test(name) || !/^[A-Za-z_]\w*$/.test(name)
      ? []
      : [`export ${name}=${shellQuote(value)}`],
  );
  return [...variables, `cd ${shellQuote(process.cwd())} || exit`, `exec ${shellWords(command)} </dev/null`, ''].join(
    '\n',
  );
}
