import type { AdText, ClusterView, Gryphus } from '../../index.ts';
import { indicesFrom, spans } from './array-indices.ts';
import { ATTRIBUTES, SlurmJob } from './slurm-job.ts';

/** What a task that has not started shares with others of its array. */
const SHARED = new Set(
  'GryphusArray JobBatchName Cmd Owner BatchQueue GryphusSite BatchProject GryphusAccount RequestCpus RequestGPUs MachineCount RequestMemory BatchRuntime QDate Iwd JobDescription JobPrio'.split(
    ' ',
  ),
);
/** Tasks that are given at once. */
const AT_ONCE = 1000;

/** A task of an array, not made yet. */
interface Unmade {
  readonly proc: number;
  readonly task: number;
  readonly removed: boolean;
}

/**
 * Tasks of arrays that the queue has not made yet because of the array's limit (`%4`), which to Slurm, PBS and Grid Engine are jobs that
 * wait. They are counted before the queue is read and told after it, so that none is missing that is made meanwhile.
 */
export class UnmadeTasks {
  readonly #gryphus: Gryphus;
  readonly #late: ReadonlyMap<number, ClusterView>;
  readonly #seen = new Map<number, { readonly procs: Set<number>; like: SlurmJob }>();

  private constructor(gryphus: Gryphus, late: readonly ClusterView[]) {
    this.#gryphus = gryphus;
    this.#late = new Map(late.map((one) => [one.cluster, one]));
  }

  static async count(gryphus: Gryphus, clusters: readonly number[] | undefined): Promise<UnmadeTasks> {
    const views = await gryphus.clusters({ removedUnmade: true, ...(clusters && { clusters }) });
    return new UnmadeTasks(
      gryphus,
      views.filter(({ totals }) => totals.unmaterialized > 0),
    );
  }

  /** Called with each job that was read. */
  see(job: SlurmJob): void {
    if (!this.#late.has(job.cluster)) return;
    const seen = this.#seen.get(job.cluster);
    if (seen) seen.procs.add(job.proc);
    else this.#seen.set(job.cluster, { procs: new Set([job.proc]), like: job });
  }

  /** Each of them, some at a time; those that were cancelled too if `all`. */
  async *rest(all: boolean): AsyncGenerator<readonly SlurmJob[]> {
    for (const array of await this.#arrays()) {
      let some: SlurmJob[] = [];
      for (const { proc, task, removed } of tasksOf(array)) {
        if (removed && !all) continue;
        some.push(jobOf(array, proc, task, removed ? { JobStatus: '3' } : {}));
        if (some.length < AT_ONCE) continue;
        yield some;
        some = [];
      }
      yield some;
    }
  }

  /** One job for those of each array that wait and are wanted: `12_[5-1000000%4]`, as squeue prints it. */
  async *joined(isWanted: (cluster: number, task: number) => boolean): AsyncGenerator<SlurmJob> {
    for (const array of await this.#arrays()) {
      let first: Unmade | undefined;
      const list = spans(
        (function* () {
          for (const one of tasksOf(array)) {
            if (one.removed || !isWanted(array.cluster, one.task)) continue;
            first ??= one;
            yield one.task;
          }
        })(),
      );
      if (first === undefined) continue;
      const most = /%\d+$/.exec(array.like.array)?.[0] ?? '';
      yield jobOf(array, first.proc, first.task).as(`${array.cluster}_[${list}${most}]`);
    }
  }

  async #arrays(): Promise<readonly LateArray[]> {
    const arrays: LateArray[] = [];
    for (const { cluster, procs, totals, removedUnmade: removed = new Set<number>() } of this.#late.values()) {
      const seen = this.#seen.get(cluster);
      const like = seen?.like ?? (await this.#anyOf(cluster));
      if (!like || like.array === '') continue;
      const from = procs - totals.unmaterialized;
      const shared = Object.fromEntries(Object.entries(like.ad).filter(([name]) => SHARED.has(name)));
      arrays.push({ cluster, from, to: procs, like, shared, made: seen?.procs ?? new Set(), removed });
    }
    return arrays;
  }

  async #anyOf(cluster: number): Promise<SlurmJob | undefined> {
    for await (const { id, ad } of this.#gryphus.jobs({ clusters: [cluster], attributes: ATTRIBUTES, limit: 1 }))
      return new SlurmJob(id, ad);
    return undefined;
  }
}

/** An array with procs that were not made when they were counted, from `from` on and below `to`. */
interface LateArray {
  readonly cluster: number;
  readonly from: number;
  readonly to: number;
  readonly like: SlurmJob;
  readonly shared: AdText;
  /** The procs that have been read. */
  readonly made: ReadonlySet<number>;
  readonly removed: ReadonlySet<number>;
}

function* tasksOf({ from, to, like, made, removed }: LateArray): Generator<Unmade> {
  let proc = from;
  for (const task of indicesFrom(like.array, from)) {
    if (proc >= to) return;
    if (!made.has(proc)) yield { proc, task, removed: removed.has(proc) };
    proc++;
  }
}

function jobOf({ cluster, shared }: LateArray, proc: number, task: number, more: AdText = {}): SlurmJob {
  return new SlurmJob({ cluster, proc }, { ...shared, ...more, GryphusArrayTask: String(task) });
}
