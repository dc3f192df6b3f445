import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { getopt, Refused } from './options.ts';

const SPEC =
  '-n|--ntasks= -N|--nodes= -c|--cpus-per-task= -J|--job-name= -u|--unbuffered -Q|--quiet -v|--verbose --mem= --mem-per-cpu= --cpu-bind= --mpi= --exclusive=? --exact --overlap -K|--kill-on-bad-exit=? --export= --ntasks-per-node= --gres= -G|--gpus=';

/**
 * Within a job, runs the command once for each task, on the job's machine; the highest exit status. What a task asks for
 * (cores, memory, binding) says nothing there: all of them share what the job has.
 */
export async function srun(words: readonly string[]): Promise<number> {
  if (process.env['SLURM_JOB_ID'] === undefined) srunAsRun(words);
  const { values, words: command } = getopt(SPEC, words, true);
  if (command.length === 0) throw new Refused('No command given to execute.');
  const tasks = Number(values.get('ntasks') ?? process.env['SLURM_NTASKS'] ?? 1);
  if (!Number.isInteger(tasks) || tasks < 1) throw new Refused(`Invalid numeric value "${tasks}" for -n.`);
  if (!['ALL', undefined].includes(values.get('export'))) throw new Refused('--export: only ALL is supported');
  if (Number(values.get('nodes') ?? 1) > 1) throw new Refused('Unable to create step: the job has one node');
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.removeAllListeners(signal);
  const all = await Promise.all(Array.from({ length: tasks }, (_, rank) => run(command, rank, tasks)));
  return Math.max(...all);
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

function run([program = '', ...args]: readonly string[], rank: number, tasks: number): Promise<number> {
  const own = { SLURM_PROCID: rank, SLURM_LOCALID: rank, SLURM_NTASKS: tasks, SLURM_NPROCS: tasks, SLURM_STEP_ID: 0 };
  const env = {
    ...process.env,
    ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name, String(value)])),
  };
  // Only the first task has standard input.
  const child = spawn(program, args, { env, stdio: [rank === 0 ? 'inherit' : 'ignore', 'inherit', 'inherit'] });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((done, fail) => {
    child.once('error', ({ message }) => fail(new Refused(`execve(): ${program}: ${message}`, 2)));
    child.once('close', (code, signal) => done(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}
