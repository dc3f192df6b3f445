import { connect } from 'node:net';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { GryphusError } from '../errors.ts';
import { Attrs, type AttrTexts } from '../job/attrs.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import { compileConstraint, quoted } from '../job/values.ts';
import type { PoolOwner, WaitInPool } from '../pool/client-wire.ts';
import { type DeskClient, deskToAsk } from '../pool/desk-client.ts';
import { type MapResult, type MapTask, mapTasks } from '../pool/map.ts';
import { poolPlaces } from '../pool/places.ts';
import type { Queue } from '../queue/api.ts';
import { BlobIndex } from '../staging/blobs.ts';
import { resolveInputs } from '../staging/inputs.ts';
import type { ActionResult, AdText } from './types.ts';

export type { MapResult, MapTask } from '../pool/map.ts';

/** What all tasks of a map have in common. */
export interface MapRequest {
  /** The program, as it is found on every worker: absolute, or by PATH. */
  readonly executable: string;
  /** Words before each task's own. */
  readonly args?: readonly string[];
  /** Where tasks run on workers that share this file system; default: here. Elsewhere each has a directory of its own. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Files that each task finds in its own directory. With these no task runs in `cwd`. */
  readonly inputs?: readonly string[];
  /** Default 1. */
  readonly cpus?: number;
  /** MB; default 128. */
  readonly memory?: number;
  /** ClassAd expressions: which workers may run it, and which it prefers. */
  readonly requirements?: string;
  readonly rank?: string;
  /** How often a task that fails is started again; default 0. */
  readonly retries?: number;
  /** The most that run at once; without it, as many as there are slots. */
  readonly atOnce?: number;
  readonly signal?: AbortSignal;
}

const DESK_MS = 60_000;
const DISK_KB = 1024;

/** Sees to it that the desk runs, and waits for it. */
export async function openDesk(queue: Queue, paths: Paths): Promise<string> {
  const { clientSocket } = poolPlaces(paths);
  if (await answers(clientSocket)) return clientSocket;
  await queue.kv.set('pool', 'wanted', String(Date.now()));
  await queue.notice({ about: 'site-up', site: 'pool', message: 'The pool is wanted.' });
  for (const end = Date.now() + DESK_MS; Date.now() < end; ) {
    if (await answers(clientSocket)) return clientSocket;
    await new Promise((resume) => setTimeout(resume, 50));
  }
  throw new GryphusError('site-unreachable', "The pool's desk did not start.", {
    suggestions: [`See ${paths.logDir}/scheduler.log and ${paths.logDir}/pool.log.`],
  });
}

function answers(socket: string): Promise<boolean> {
  return new Promise((settle) => {
    const probe = connect({ path: socket });
    probe.once('connect', () => {
      probe.destroy();
      settle(true);
    });
    probe.once('error', () => settle(false));
  });
}

/** Runs tasks over the pool; results come in the order of completion. */
export async function* mapOverPool<T>(
  queue: Queue,
  paths: Paths,
  owner: string,
  request: MapRequest,
  tasks: AsyncIterable<MapTask<T>> | Iterable<MapTask<T>>,
): AsyncGenerator<MapResult<T>> {
  const cwd = resolve(request.cwd ?? '.');
  const inputs = await resolveInputs(
    (request.inputs ?? []).map((name) => resolve(cwd, name)),
    new BlobIndex(),
  ).catch((thrown: unknown) => {
    // There is no job that could be released.
    throw thrown instanceof GryphusError ? new GryphusError(thrown.code, thrown.message, { cause: thrown }) : thrown;
  });
  if (request.requirements !== undefined) compileConstraint(request.requirements, '--requirements');
  if (request.rank !== undefined) compileConstraint(request.rank, 'rank');
  const cpus = request.cpus ?? 1;
  const memory = request.memory ?? 128;
  yield* mapTasks(tasks, {
    socket: await openDesk(queue, paths),
    owner,
    retries: request.retries ?? 0,
    size: { cpus, memoryMb: memory, diskKb: DISK_KB, gpus: 0 },
    ad: {
      MyType: quoted('Job'),
      JobUniverse: '5',
      Owner: quoted(owner),
      Cmd: quoted(request.executable),
      RequestCpus: String(cpus),
      RequestMemory: String(memory),
      RequestDisk: String(DISK_KB),
      FileSystemDomain: quoted(hostname()),
      Requirements: request.requirements ?? 'true',
      Rank: request.rank ?? '0.0',
    },
    spec: {
      executable: { kind: 'there', path: request.executable },
      args: request.args ?? [],
      env: request.env ?? {},
      stdin: undefined,
      inputs,
      joinStderr: false,
      ...(inputs.length > 0 ? {} : { shared: { cwd, executable: request.executable } }),
    },
    ...(request.atOnce === undefined ? {} : { window: request.atOnce }),
    ...(request.signal === undefined ? {} : { signal: request.signal }),
  });
}

/** The pool's slots as ClassAds; none where no desk runs. */
export async function poolSlots(paths: Paths, constraint?: string): Promise<readonly AdText[]> {
  const wanted = constraint === undefined ? () => true : compileConstraint(constraint, '--constraint');
  const ads = await asking(paths, async (desk) => (await desk.ask({ t: 'slots' }, 'slots')).ads, [] as AttrTexts[]);
  return ads.map((ad) => plain(ad)).filter((ad) => wanted(new Attrs(ad)));
}

/** Who uses the pool and who waits for it, whoever would be served first first; none where no desk runs. */
export function poolOwners(paths: Paths): Promise<readonly PoolOwner[]> {
  return asking<readonly PoolOwner[]>(paths, async (desk) => (await desk.ask({ t: 'owners' }, 'owners')).owners, []);
}

/** Why a job waits in the pool; no lines where no desk runs, or nothing keeps it. */
export function whyInPool(paths: Paths, agent: string, id: JobId): Promise<WaitInPool> {
  const job = `${agent}.${formatJobId(id)}`;
  return asking<WaitInPool>(paths, (desk) => desk.ask({ t: 'why', job }, 'why'), { lines: [] });
}

/** Vacates, suspends or continues jobs that run in the pool. */
export async function steerInPool(
  paths: Paths,
  agent: string,
  how: 'vacate' | 'suspend' | 'continue',
  ids: readonly JobId[],
): Promise<readonly ActionResult[]> {
  const jobs = ids.map((id) => `${agent}.${formatJobId(id)}`);
  const steered = new Set(
    await asking(paths, async (desk) => (await desk.ask({ t: 'steer', jobs, how }, 'steered')).jobs, [] as string[]),
  );
  const done = { vacate: 'vacated', suspend: 'suspended', continue: 'continued' }[how];
  return ids.map((id) =>
    steered.has(`${agent}.${formatJobId(id)}`)
      ? { id, result: 'done', words: done }
      : { id, result: 'bad-state', words: 'not running in the pool' },
  );
}

async function asking<T>(paths: Paths, work: (desk: DeskClient) => Promise<T>, without: T): Promise<T> {
  const socket = poolPlaces(paths).clientSocket;
  const desk = deskToAsk(socket, 'ask');
  try {
    return await work(desk);
  } catch (thrown) {
    if (thrown instanceof GryphusError && thrown.code === 'site-unreachable') return without;
    throw thrown;
  } finally {
    await desk.close();
  }
}

function plain(ad: AttrTexts): AdText {
  return Object.fromEntries(Object.entries(ad).flatMap(([name, text]) => (text === null ? [] : [[name, text]])));
}
