import { hostname } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import * as z from 'zod';
import type { Paths } from '../config/paths.ts';
import { GryphusError } from '../errors.ts';
import { compileConstraint, quoted } from '../job/values.ts';
import { poolPlaces } from '../pool/host/places.ts';
import { mapTasks } from '../pool/map.ts';
import type { MapResult, PoolTask } from '../pool/map-types.ts';
import type { Queue } from '../queue/api.ts';
import type { InputFile } from '../site/contract.ts';
import { BlobIndex } from '../staging/blobs.ts';
import { inputAs, resolveInputs } from '../staging/inputs.ts';
import { plainName } from '../util/plain-name.ts';
import { oneLine } from '../util/plain-text.ts';
import { warn } from '../util/warn.ts';
import { openCentralManager } from './pool.ts';

export type { MapResult } from '../pool/map-types.ts';

/** What all tasks of a map have in common. */
export interface MapRequest<T = unknown> {
  /** The program as found on every worker: absolute, or by PATH. */
  readonly executable: string;
  /** Arguments before each task's own. */
  readonly args?: readonly string[];
  /** The base of relative file names, and where tasks run that name no files; default: the current directory. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Files that each task finds in its own directory under their base names. */
  readonly inputs?: readonly string[];
  /**
   * Tasks may run on any worker, each in its own directory with its inputs. Otherwise they run in `cwd`, on workers
   * that share it. Default: true if there are `inputs`.
   */
  readonly anywhere?: boolean;
  /** Default: 1. */
  readonly cpus?: number;
  /** MB; default: 128. */
  readonly memory?: number;
  /** ClassAd expressions: which workers may run a task, and which ones it prefers. */
  readonly requirements?: string;
  readonly rank?: string;
  /** How many times a failed task is restarted; default: 0. */
  readonly retries?: number;
  /** The most tasks that run at once; default: as many as there are slots. */
  readonly atOnce?: number;
  /** Seconds after which a task is ended, and has failed. */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
  /**
   * What a warning calls a task; default: its number, from 0. There is one if the pool has lost its records: of the tasks that run again
   * although they may have run, 500 at most.
   */
  readonly nameOf?: (of: T) => string;
  /** Once aborted, no further task is started; those that run are waited for. */
  readonly enough?: AbortSignal;
}

/** One task: the arguments after the program's own, and its own files in a map that runs `anywhere`. */
export interface MapTask<T> {
  readonly args: readonly string[];
  /** Returned with the result. */
  readonly of: T;
  /** Files and directories below `cwd`; the task finds them under the same names in its own directory. */
  readonly inputs?: readonly string[];
  /** Files that the task creates in its own directory; they come back below `cwd`. */
  readonly outputs?: readonly string[];
}

const names = z.array(z.string());
const SHAPE = z.looseObject({ args: names, inputs: names.optional(), outputs: names.optional() });

const DISK_KB = 1024;
/** Matches workers that share the file system (HTCondor's FILESYSTEM_DOMAIN). */
const SHARING = 'TARGET.FileSystemDomain =?= MY.FileSystemDomain';

function warnOfAgain(names: readonly string[]): void {
  const what = 'The pool has lost its records. These tasks start again, although they may have run, at least in part: ';
  warn(`${what}${names.map(oneLine).join(', ')}.`);
}

/** Runs tasks in the pool; yields results in order of completion. */
export async function* mapOverPool<T>(
  queue: Queue,
  paths: Paths,
  owner: string,
  request: MapRequest<T>,
  tasks: AsyncIterable<MapTask<T>> | Iterable<MapTask<T>>,
): AsyncGenerator<MapResult<T>> {
  const cwd = resolve(request.cwd ?? '.');
  const blobs = new BlobIndex();
  const common = (request.inputs ?? []).map((name) => resolve(cwd, name));
  const inputs = await unheld(resolveInputs(common, blobs));
  const anywhere = request.anywhere ?? inputs.length > 0;
  if ([request.executable, ...(request.args ?? []), ...Object.entries(request.env ?? {}).flat()].some(hasNul))
    throw new GryphusError('usage', 'The program, an argument or a variable of the map has a NUL byte.');
  if (request.requirements !== undefined) compileConstraint(request.requirements, 'requirements');
  if (request.rank !== undefined) compileConstraint(request.rank, 'rank');
  const cpus = request.cpus ?? 1;
  const memory = request.memory ?? 128;
  yield* mapTasks(read(tasks, { cwd, anywhere, blobs }), {
    socket: await openCentralManager(queue, paths),
    journal: poolPlaces(paths).journal,
    onAgain: (some) => warnOfAgain(some.map(({ of, index }) => request.nameOf?.(of) ?? String(index))),
    owner,
    cwd,
    spoolDir: paths.spoolDir,
    retries: request.retries ?? 0,
    size: { cpus, memoryMb: memory, diskKb: DISK_KB, gpus: 0 },
    ad: {
      MyType: quoted('Job'),
      JobUniverse: '5',
      Owner: quoted(owner),
      // Tasks are kept by their client, and do not go to other pools.
      WantFlock: 'false',
      Cmd: quoted(request.executable),
      RequestCpus: String(cpus),
      RequestMemory: String(memory),
      RequestDisk: String(DISK_KB),
      FileSystemDomain: quoted(hostname()),
      Requirements: requirements(request.requirements, anywhere),
      Rank: request.rank ?? '0.0',
    },
    spec: {
      executable: { kind: 'there', path: request.executable },
      args: request.args ?? [],
      env: request.env ?? {},
      inputs,
      joinStderr: false,
      ...(request.timeout === undefined ? {} : { walltimeSeconds: request.timeout }),
      ...(anywhere ? {} : { shared: { cwd, executable: request.executable } }),
    },
    ...(request.atOnce === undefined ? {} : { window: request.atOnce }),
    ...(request.signal === undefined ? {} : { signal: request.signal }),
    ...(request.enough === undefined ? {} : { enough: request.enough }),
  });
}

/** No program can be given such a text. */
function hasNul(text: string): boolean {
  return text.includes('\0');
}

/** Like those of a vanilla job without file transfer, unless `own` refers to the domain itself. */
function requirements(own: string | undefined, anywhere: boolean): string {
  if (anywhere || (own !== undefined && /\bFileSystemDomain\b/i.test(own))) return own ?? 'true';
  return own === undefined ? SHARING : `(${own}) && (${SHARING})`;
}

interface Reading {
  readonly cwd: string;
  readonly anywhere: boolean;
  readonly blobs: BlobIndex;
}

/** Converts the tasks to the pool's form; throws at the first invalid one. */
async function* read<T>(
  tasks: AsyncIterable<MapTask<T>> | Iterable<MapTask<T>>,
  { cwd, anywhere, blobs }: Reading,
): AsyncGenerator<PoolTask<T>> {
  let number = 0;
  for await (const task of tasks) {
    number++;
    const shape = SHAPE.safeParse(task);
    if (!shape.success) {
      throw new GryphusError('usage', `Task ${number} of the map, ${shown(task)}, is not { args: [words], of }.`);
    }
    const { args, inputs = [], outputs = [] } = shape.data;
    if (args.some(hasNul))
      throw new GryphusError('usage', `Task ${number} of the map has an argument with a NUL byte.`);
    if (!anywhere && inputs.length + outputs.length > 0) {
      throw new GryphusError('usage', `Task ${number} of the map names files, and the map runs in ${cwd}.`, {
        suggestions: ['Give the map `anywhere: true`: then each task has a directory of its own.'],
      });
    }
    const from = inputs.map((name) => below(cwd, name));
    const to = outputs.map((name) => below(cwd, name));
    yield { args, of: task.of, outputs: to, ...(await ownInputs(from, cwd, blobs)) };
  }
}

/** An unreadable file fails its task, not the whole map. */
async function ownInputs(
  given: readonly string[],
  cwd: string,
  blobs: BlobIndex,
): Promise<{ readonly inputs: InputFile[]; readonly refused?: string }> {
  const inputs: InputFile[] = [];
  try {
    for (const name of given) inputs.push(...(await inputAs(join(cwd, name), name, blobs)));
    return { inputs };
  } catch (thrown) {
    if (!(thrown instanceof GryphusError)) throw thrown;
    return { inputs: [], refused: thrown.message };
  }
}

/** A name that is valid on any worker, where a path outside `cwd` would mean nothing. */
function below(cwd: string, name: string): string {
  const plain = isAbsolute(name) ? undefined : plainName(name);
  if (plain !== undefined && plain !== '') return plain;
  throw new GryphusError('usage', `A task cannot transfer ${JSON.stringify(name)}: it is not below ${cwd}.`, {
    suggestions: ['Start the map in a directory above all of its files, and name them relative to it.'],
  });
}

/** Drops the suggestions, which would advise releasing a job that does not exist. */
async function unheld<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    if (!(thrown instanceof GryphusError)) throw thrown;
    throw new GryphusError(thrown.code, thrown.message, { cause: thrown });
  }
}

function shown(task: unknown): string {
  const text = JSON.stringify(task) ?? String(task);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
