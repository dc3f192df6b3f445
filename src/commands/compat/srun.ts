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
  if (process.env['SLURM_JOB_ID'] === undefined)
    throw new Refused('srun works within a job; elsewhere use gryphus run');
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
