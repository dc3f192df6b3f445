import { type ChildProcess, spawn } from 'node:child_process';
import { constants, hostname } from 'node:os';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { shellQuote, shellWords } from '../../util/shell-quote.ts';
import { getopt, Refused } from './options.ts';

const SPEC =
  '-n|--ntasks= -N|--nodes= -c|--cpus-per-task= -J|--job-name= -l|--label -u|--unbuffered -Q|--quiet -v|--verbose --mem= --mem-per-cpu= --cpu-bind= --mpi= --exclusive=? --exact --overlap -K|--kill-on-bad-exit=? --export= --ntasks-per-node= --gres= -G|--gpus=';

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
  const { values, words: command } = getopt(SPEC, words, true);
  if (command.length === 0) throw new Refused('No command given to execute.', 1, 'fatal');
  if (!['ALL', undefined].includes(values.get('export'))) throw new Refused('--export: only ALL is supported');
  const tasks = stepOf(values, process.env);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.removeAllListeners(signal);
  const bad = values.get('kill-on-bad-exit');
  const step = new Step(tasks, values.has('label'), bad !== undefined && bad !== '0');
  return Math.max(...(await Promise.all(tasks.map((task) => step.run(command, task)))));
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

/** The tasks of one step, each a process. */
class Step {
  readonly #tasks: readonly Task[];
  readonly #label: boolean;
  readonly #killOnBadExit: boolean;
  readonly #children = new Set<ChildProcess>();

  constructor(tasks: readonly Task[], label: boolean, killOnBadExit: boolean) {
    this.#tasks = tasks;
    this.#label = label;
    this.#killOnBadExit = killOnBadExit;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => this.#kill(signal));
  }

  /** Its exit status. */
  async run(command: readonly string[], { rank, node, local }: Task): Promise<number> {
    const own = {
      SLURM_PROCID: rank,
      SLURM_LOCALID: local,
      SLURM_NODEID: node,
      SLURM_NTASKS: this.#tasks.length,
      SLURM_NPROCS: this.#tasks.length,
      SLURM_STEP_ID: 0,
      SLURM_STEP_NUM_NODES: new Set(this.#tasks.map((one) => one.node)).size,
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
    const output = this.#label ? 'pipe' : 'inherit';
    const child = spawn(program, args, { env, stdio: [stdin, output, output] });
    this.#children.add(child);
    child.stdin?.on('error', () => undefined).end(away ? remotely(command, env) : '');
    const prefix = `${String(rank).padStart(String(this.#tasks.length - 1).length)}: `;
    if (child.stdout) labelled(child.stdout, prefix, process.stdout);
    if (child.stderr) labelled(child.stderr, prefix, process.stderr);
    return new Promise((done, fail) => {
      child.once('error', ({ message }) => fail(new Refused(`execve(): ${program}: ${message}`, 2)));
      child.once('close', (code, signal) => {
        this.#children.delete(child);
        const status = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
        const where = rsh === undefined ? hostname() : `node${node}`;
        const how = SIGNALED[status] ?? `Exited with exit code ${status}`;
        if (status !== 0) {
          process.stderr.write(`srun: error: ${where}: task ${rank}: ${how}\n`);
          if (this.#killOnBadExit) this.#kill('SIGKILL');
        }
        done(status);
      });
    });
  }

  #kill(signal: NodeJS.Signals): void {
    for (const child of this.#children) child.kill(signal);
  }
}

/** As srun names them. */
const SIGNALED: Readonly<Record<number, string>> = {
  134: 'Aborted',
  137: 'Killed',
  139: 'Segmentation fault',
  143: 'Terminated',
};

function labelled(from: Readable, prefix: string, to: Writable): void {
  createInterface({ input: from }).on('line', (line) => to.write(`${prefix}${line}\n`));
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
