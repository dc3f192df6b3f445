import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import type { Paths } from '../config/paths.ts';
import {
  type DagOrder,
  DEFAULT_SETTINGS,
  haltName,
  JournalPlace,
  lastRescue,
  logOf,
  readJournal,
  readOrder,
  replayDag,
  rescueName,
  type Told,
} from '../dag/api.ts';
import { GryphusError } from '../errors.ts';
import { isEnd } from '../job/life.ts';
import type { Attrs } from '../job/attrs.ts';
import { UNIVERSE } from '../job/universe.ts';
import { readBoolean, readString } from '../job/values.ts';
import type { Queue } from '../queue/api.ts';
import { jobArguments } from '../submit/api.ts';
import { firstOf } from '../util/first-of.ts';
import { act } from './act.ts';
import { enqueueDag, readyDag } from './dag-submit.ts';
import { type DagPicture, pictureOfDag, type PictureWish } from './dag-picture.ts';
import type { DagLimits, DagStatus, DagSubmitRequest, DagSubmitted } from './dag-types.ts';
import { wait } from './wait.ts';

/** DAGMan's exit code for a removed DAG. */
const REMOVED = 2;

type Replay = NonNullable<ReturnType<typeof replayDag>>;

/** A DAG at some length of its journal: to look at it again costs nothing until more is written. */
interface Replayed {
  readonly cluster: number;
  readonly written: string;
  readonly engine: Replay | undefined;
  progress?: ReturnType<Replay['progress']> | undefined;
}

interface Found extends Omit<DagStatus, 'exitCode' | 'progress'> {
  readonly order: DagOrder;
}

/** Submits, inspects and controls the DAGs of this agent. A DAG is named by its manager's cluster, or by its file. */
export class DagClient {
  readonly #queue: Queue;
  readonly #paths: Paths;
  readonly #owner: string;
  #last: Replayed | undefined;

  constructor(queue: Queue, paths: Paths, owner: string) {
    this.#queue = queue;
    this.#paths = paths;
    this.#owner = owner;
  }

  /** Refuses a DAG with errors ('dag-refused') before anything runs. */
  async submit(request: DagSubmitRequest, cwd = process.cwd()): Promise<DagSubmitted> {
    await this.#refuseSecond(request, cwd);
    const ready = readyDag(request, cwd);
    const cluster = await enqueueDag(this.#queue, this.#paths, this.#owner, ready, cwd);
    return { cluster, file: ready.file, log: logOf(request.order), warnings: ready.warnings };
  }

  /** Two managers of one DAG would run each node twice. Searches the queue only if the DAG was submitted before. */
  async #refuseSecond({ order: { files } }: DagSubmitRequest, cwd: string): Promise<void> {
    const [primary = ''] = files;
    const path = resolve(cwd, primary);
    if (!existsSync(`${path}.condor.sub`)) return;
    const running = (await this.#inQueue()).find(
      (dag) => dag.manager !== 'gone' && !isEnd(dag.manager) && resolve(dag.directory, dag.files[0] ?? '') === path,
    );
    if (running === undefined) return;
    throw new GryphusError('dag-refused', `DAG ${primary} is already in the queue, as cluster ${running.cluster}.`, {
      suggestions: [
        `See \`gryphus dag status ${running.cluster}\`.`,
        `Remove it first: \`gryphus dag rm ${running.cluster}\`; its rescue file records the nodes that are done.`,
      ],
    });
  }

  /** DAGMan's exit code, once the DAG has ended. */
  async wait(cluster: number, signal?: AbortSignal): Promise<number> {
    await wait(this.#queue, { clusters: [cluster], ...(signal ? { signal } : {}) });
    return new JournalPlace(this.#paths, cluster).ended()?.exitCode ?? REMOVED;
  }

  /** One DAG's status, or that of all in the queue. */
  async status(name?: string): Promise<readonly DagStatus[]> {
    const found = name === undefined ? await this.#inQueue() : [await this.#find(name)];
    return found.map((dag) => this.#statusOf(dag));
  }

  /** Starts nothing more until it is resumed; what is running finishes. */
  async halt(name: string): Promise<DagStatus> {
    const dag = await this.#running(name);
    writeFileSync(haltFile(dag), '');
    return this.#tell(dag, { is: 'halt' });
  }

  /** Lets a halted DAG continue. `name`: a cluster, or a DAG file. Rejects with `not-found` if no such DAG runs. */
  async resume(name: string): Promise<DagStatus> {
    const dag = await this.#running(name);
    rmSync(haltFile(dag), { force: true });
    return this.#tell(dag, { is: 'resume' });
  }

  /** Changes a running DAG's limits at once. `name`: as for `resume`. */
  async throttle(name: string, limits: DagLimits): Promise<DagStatus> {
    return this.#tell(await this.#running(name), { is: 'throttle', limits });
  }

  /** Its manager writes a rescue file, removes the nodes' jobs and runs the final node. */
  async remove(name: string): Promise<DagStatus> {
    const dag = await this.#running(name);
    await act(this.#queue, 'remove', { clusters: [dag.cluster] }, this.#owner);
    return dag;
  }

  /** The engine in its manager's current state; nothing remains of a DAG that has ended. */
  async engine(name: string): Promise<ReturnType<typeof replayDag>> {
    return this.#replay(await this.#find(name)).engine;
  }

  /** What to draw of a DAG that runs; `undefined` if it has not started, or nothing remains of it. */
  async picture(name: string, wish: PictureWish = {}): Promise<DagPicture | undefined> {
    const engine = await this.engine(name);
    return engine && pictureOfDag(engine, wish);
  }

  async #tell(dag: Found, told: Told): Promise<DagStatus> {
    await this.#queue.dag(dag.cluster).tell(told);
    return dag;
  }

  #statusOf({ order, ...dag }: Found): DagStatus {
    // Read the journal first: the record of the end is on disk before the journal is deleted.
    const replayed = this.#replay({ ...dag, order });
    const end = new JournalPlace(this.#paths, dag.cluster).ended();
    const progress = end === undefined ? (replayed.progress ??= replayed.engine?.progress()) : end.progress;
    const over = end !== undefined || dag.manager === 'gone' || isEnd(dag.manager);
    const rescue = over && end?.exitCode !== 0 ? newestRescue(dag) : undefined;
    const continuesFrom = over ? undefined : replayed.engine?.rescueFile;
    return {
      ...dag,
      ...(end === undefined ? {} : { exitCode: end.exitCode }),
      ...(continuesFrom === undefined ? {} : { continuesFrom }),
      ...(rescue === undefined ? {} : { rescue }),
      ...(progress === undefined ? {} : { progress }),
    };
  }

  #replay({ cluster, order, directory }: Found): Replayed {
    const { journal } = new JournalPlace(this.#paths, cluster);
    const written = signatureOf(journal);
    if (this.#last?.cluster === cluster && this.#last.written === written) return this.#last;
    const engine = replayDag({ ...order, dagmanId: cluster, version: '' }, directory, readJournal(journal));
    const replayed = { cluster, written, engine };
    if (engine) this.#last = replayed;
    return replayed;
  }

  async #running(name: string): Promise<Found> {
    const dag = await this.#find(name);
    if (dag.manager !== 'gone' && !isEnd(dag.manager)) return dag;
    throw new GryphusError('not-found', `DAG ${dag.cluster} has ended.`, {
      suggestions: [`See \`gryphus dag status ${dag.cluster}\`.`],
    });
  }

  /** By cluster, or the newest DAG with this file. */
  async #find(name: string): Promise<Found> {
    if (/^\d+(\.0)?$/.test(name)) {
      const found = await this.#byCluster(Number.parseInt(name, 10));
      if (found !== undefined) return found;
    } else {
      const path = resolve(name);
      const fits = (dag: Found): boolean => dag.files.some((file) => resolve(dag.directory, file) === path);
      const inQueue = (await this.#inQueue()).filter(fits).at(-1);
      if (inQueue !== undefined) return inQueue;
      for await (const { id, attrs } of this.#queue.history.read({ where: ({ attrs }) => isDag(attrs) })) {
        const dag = dagOf(id.cluster, 'gone', attrs);
        if (dag !== undefined && fits(dag)) return dag;
      }
    }
    throw new GryphusError('not-found', `There is no DAG ${JSON.stringify(name)}.`, {
      suggestions: ['Name it by its cluster or its file; see `gryphus dag status`.'],
    });
  }

  async #byCluster(cluster: number): Promise<Found | undefined> {
    const sighting = await firstOf(this.#queue.look([{ ids: [{ cluster, proc: 0 }] }]));
    const job = sighting?.jobs[0];
    return job && dagOf(cluster, sighting.in === 'queue' ? job.state : 'gone', job.attrs);
  }

  async #inQueue(): Promise<Found[]> {
    const dags: Found[] = [];
    // Finds their managers by the clusters' counters, without reading a queue of perhaps a million jobs.
    const summaries = await this.#queue.summaries();
    const clusters = summaries.filter(({ universe }) => universe === UNIVERSE.scheduler).map(({ cluster }) => cluster);
    for await (const { id, state, attrs } of this.#queue.query({ clusters, where: ({ attrs }) => isDag(attrs) })) {
      const dag = dagOf(id.cluster, state, attrs);
      if (dag !== undefined) dags.push(dag);
    }
    return dags;
  }
}

function isDag(attrs: Attrs): boolean {
  return attrs.has('GryphusDag') && readBoolean(attrs, 'GryphusDag') === true;
}

function dagOf(cluster: number, manager: Found['manager'], attrs: Attrs): Found | undefined {
  if (!isDag(attrs)) return undefined;
  const words = jobArguments(attrs);
  const order = readOrder(words.slice(words.indexOf('-Dag')));
  if (order === undefined) return undefined;
  return {
    cluster,
    manager,
    order,
    files: order.files,
    directory: readString(attrs, 'Iwd') ?? dirname('/'),
    // The default until the manager starts and sets it.
    batchName: readString(attrs, 'JobBatchName') ?? `${basename(order.files[0] ?? '')}+${cluster}`,
    submitted: Number(attrs.get('QDate') ?? 0),
  };
}

function newestRescue({ files, directory }: Pick<Found, 'files' | 'directory'>): string | undefined {
  const [primary = ''] = files;
  const multi = files.length > 1;
  const exists = (name: string) => existsSync(resolve(directory, name));
  const last = lastRescue(exists, primary, multi, DEFAULT_SETTINGS.DAGMAN_MAX_RESCUE_NUM, () => undefined);
  return last === 0 ? undefined : rescueName(primary, multi, last);
}

function haltFile(dag: Found): string {
  return resolve(dag.directory, haltName(dag.files[0] ?? ''));
}

/** Changes with each record; what is written after it was taken is seen the next time. */
function signatureOf(journal: string): string {
  const found = statSync(journal, { throwIfNoEntry: false });
  return found ? `${found.ino}:${found.size}:${found.mtimeMs}` : '';
}
