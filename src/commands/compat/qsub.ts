import { basename } from 'node:path';
import type { Gryphus, OwnOptions, SplitOption, SubmitRequest } from '../../index.ts';
import { runSession } from '../session.ts';
import { Refused } from './options.ts';
import { pbsId } from './pbs-jobs.ts';
import { scriptOfCommand, scriptText } from './script-file.ts';
import type { SlurmJob } from './slurm-job.ts';
import { slurmJobs } from './slurm-jobs.ts';

type Write = (text: string) => void;

/** What is to be submitted: a script, or a command for which one is made. */
interface Program {
  readonly text: string;
  readonly name: string;
  readonly args: readonly string[];
  readonly file?: string;
}

/** `-I`: a shell at this terminal; the job itself has no output. */
const PBS_OWN: OwnOptions = new Map([['-I', undefined]]);
const NO_FILES: readonly SplitOption[] = ['-o', '-e'].map((name) => ({
  name,
  value: '/dev/null',
  words: [name, '/dev/null'],
}));
const LOGIN = ['/bin/sh', '-c', 'exec env PBS_ENVIRONMENT=PBS_INTERACTIVE "${SHELL:-/bin/sh}"'];

/** Submits as PBS' qsub does; the exit status. */
export async function pbsQsub(gryphus: Gryphus, words: readonly string[], write: Write, warn: Write): Promise<number> {
  const { readDescription, sessions, splitOptions } = await import('../../index.ts');
  const { options, rest } = splitOptions('pbs', words, PBS_OWN);
  const isSession = options.some(({ name }) => name === '-I');
  if (isSession && rest.length > 0) throw new Refused('-I opens a shell, and takes no script or command', 2);
  const isCommand = words[words.length - rest.length - 1] === '--';
  if (isCommand && rest.length === 0) throw new Refused('a command is missing after --', 2);
  let program: Program;
  if (isSession) program = { text: `#!/bin/sh\n${(await sessions()).sessionHolder()}`, name: 'STDIN', args: [] };
  else if (isCommand) program = commandOf(rest);
  else
    program = await scriptOf(rest, (file) =>
      scriptText(readDescription, file, new Refused('script file:: No such file or directory')),
    );
  const waits = options.some(({ name, value }) => name === '-W' && /^block=true$/i.test(value));
  const passed = options.filter(({ name, value }) => !PBS_OWN.has(name) && !(name === '-W' && /^block=/i.test(value)));
  if (isSession) passed.push(...NO_FILES);
  const cluster = await submit(gryphus, 'pbs', program, passed, (message) => warn(`qsub: warning: ${message}\n`));
  const [first] = await firstJob(gryphus, cluster);
  const quiet = options.some(({ name }) => name === '-z');
  if (isSession) {
    const id = pbsId(cluster, undefined);
    write(`qsub: waiting for job ${id} to start\n`);
    const status = await runSession(gryphus, { cluster, proc: 0 }, LOGIN, () => write(`qsub: job ${id} ready\n\n`));
    write(`\nqsub: job ${id} completed\n`);
    return status;
  }
  if (!quiet) write(`${pbsId(cluster, first !== undefined && first.array !== '' ? 'array' : undefined)}\n`);
  return waits ? worst(await ended(gryphus, cluster)) : 0;
}

const SGE_OWN: OwnOptions = new Map(
  ['-terse', '-sync', '-b', '-shell', '-now', '-clear', '-verify'].map((name) => [name, undefined]),
);

/** Submits as Grid Engine's qsub does; the exit status. */
export async function sgeQsub(gryphus: Gryphus, words: readonly string[], write: Write, warn: Write): Promise<number> {
  const { readDescription, splitOptions } = await import('../../index.ts');
  const { options, rest } = splitOptions('sge', words, SGE_OWN);
  const given = (name: string) => options.find((one) => one.name === name);
  if (given('-verify')) throw new Refused('-verify is not supported; see gryphus submit --dry-run');
  const isCommand = isYes(given('-b'));
  if (isCommand && rest.length === 0) throw new Refused('command required for a binary job', 2);
  const missing = (file: string | undefined) =>
    new Refused(
      `Unable to read script file because of error: error opening ${file ?? ''}: No such file or directory`,
      14,
    );
  const program = isCommand
    ? commandOf(rest)
    : await scriptOf(rest, (file) => scriptText(readDescription, file, missing(file)));
  const passed = options.filter(({ name }) => !SGE_OWN.has(name));
  const cluster = await submit(gryphus, 'sge', program, passed, (message) => warn(`Warning: ${message}\n`));
  const [first] = await firstJob(gryphus, cluster);
  const tasks = first?.array === undefined || first.array === '' ? '' : `.${withStep(first.array)}`;
  if (given('-terse')) write(`${cluster}${tasks}\n`);
  else
    write(
      `Your ${tasks === '' ? 'job' : 'job-array'} ${cluster}${tasks} ("${first?.name ?? program.name}") has been submitted\n`,
    );
  if (!isYes(given('-sync'))) return 0;
  const jobs = await ended(gryphus, cluster);
  for (const job of jobs) {
    const id = job.task === undefined ? `Job ${cluster}` : `Job ${cluster}.${job.task}`;
    write(`${id} exited with exit code ${statusOf(job)}.\n`);
  }
  return worst(jobs);
}

function isYes(option: SplitOption | undefined): boolean {
  if (option === undefined || /^no?$/i.test(option.value)) return false;
  if (/^y(es)?$/i.test(option.value)) return true;
  throw new Refused(`invalid option argument "${option.name} ${option.value}"`);
}

/** Grid Engine always prints the step. */
function withStep(array: string): string {
  const ranges = array.replace(/%.*/, '');
  return /^\d+-\d+$/.test(ranges) ? `${ranges}:1` : ranges;
}

function commandOf(words: readonly string[]): Program {
  return { text: scriptOfCommand(words), name: basename(words[0] ?? ''), args: [] };
}

async function scriptOf(
  rest: readonly string[],
  read: (file: string | undefined) => Promise<string>,
): Promise<Program> {
  const [file, ...args] = rest;
  const text = await read(file);
  return { text, args, ...(file === undefined ? { name: 'STDIN' } : { name: basename(file), file }) };
}

async function submit(
  gryphus: Gryphus,
  system: 'pbs' | 'sge',
  { text, name, args, file }: Program,
  options: readonly SplitOption[],
  warn: (message: string) => void,
): Promise<number> {
  const request: SubmitRequest = {
    text,
    cwd: process.cwd(),
    ...(file === undefined ? {} : { file }),
    script: { system, options: options.flatMap((one) => one.words), args, name },
  };
  const { cluster, warnings } = await gryphus.submit(request);
  for (const { line, message } of warnings) warn(`${line === undefined ? '' : `line ${line}: `}${message}`);
  return cluster;
}

async function firstJob(gryphus: Gryphus, cluster: number): Promise<SlurmJob[]> {
  for await (const job of slurmJobs(gryphus, [{ cluster, text: '' }], 'everywhere', { limit: 1 })) return [job];
  return [];
}

async function ended(gryphus: Gryphus, cluster: number): Promise<SlurmJob[]> {
  await gryphus.wait({ clusters: [cluster], until: 'end' });
  const jobs: SlurmJob[] = [];
  for await (const job of slurmJobs(gryphus, [{ cluster, text: '' }], 'everywhere')) jobs.push(job);
  return jobs.sort((a, b) => (a.task ?? 0) - (b.task ?? 0));
}

/** The exit status that a shell would give; 1 for a job that ended without one. */
export function statusOf({ exit, state }: SlurmJob): number {
  const [code = 0, signal = 0] = exit.split(':').map(Number);
  if (signal > 0) return 128 + signal;
  return code > 0 || state === 'COMPLETED' ? code : 1;
}

export function worst(jobs: readonly SlurmJob[]): number {
  return jobs.reduce((most, job) => Math.max(most, statusOf(job)), 0);
}
