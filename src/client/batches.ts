import { UNIVERSE } from '../job/universe.ts';
import { readNumber, readString } from '../job/values.ts';
import type { ClusterView, JobView } from './types.ts';

/** The jobs of a batch name, a DAG or a cluster, counted: a line of the batched view of `gryphus q`. */
export interface Batch {
  readonly owner: string;
  readonly name: string;
  submitted: number;
  done: number;
  total: number;
  running: number;
  idle: number;
  held: number;
  first: Id;
  last: Id;
  /** Only a DAG's manager is listed, which is not one of its jobs. */
  bare: boolean;
  /** Clusters whose size is in the total. */
  readonly counted: Set<number>;
}
type Id = JobView['id'];

/** Attributes needed for the batched view. */
export const BATCH_ATTRIBUTES = [
  'ClusterId',
  'ProcId',
  'Owner',
  'JobStatus',
  'JobUniverse',
  'QDate',
  'JobBatchName',
  'DAGManJobId',
  'TotalSubmitProcs',
] as const;

/** Counts each job; the sizes of clusters, and how many of their jobs are done, come from `clusters`. */
export function batchesOfJobs(jobs: Iterable<JobView>, clusters: Iterable<ClusterView> = []): Batch[] {
  const found = new Batches(clusters);
  for (const { id, ad: texts } of jobs) {
    const ad = { get: (name: string) => texts[name] };
    const dag = readNumber(ad, 'DAGManJobId');
    const manager = readNumber(ad, 'JobUniverse') === UNIVERSE.scheduler;
    const name = readString(ad, 'JobBatchName') ?? `ID: ${dag ?? id.cluster}`;
    const batch = found.of(readString(ad, 'Owner') ?? '?', name, readNumber(ad, 'QDate') ?? 0, id, id, manager);
    const is = COUNTED[readNumber(ad, 'JobStatus') ?? 0];
    // Done jobs are counted by cluster. A held manager counts, because it holds up its DAG.
    if (is && (!manager || is === 'held')) batch[is]++;
    found.size(batch, id.cluster, readNumber(ad, 'TotalSubmitProcs') ?? 1);
  }
  return found.all();
}

/** Uses the queue's counters: the clusters to show, and all clusters. */
export function batchesOfClusters(shown: Iterable<ClusterView>, all: Iterable<ClusterView> = shown): Batch[] {
  const found = new Batches(all);
  for (const { cluster, owner, batchName, dag, submitted, first, last, manager, totals } of shown) {
    if (first === undefined || last === undefined) continue;
    const [from, to] = [first, last].map((proc) => ({ cluster, proc })) as [Id, Id];
    const batch = found.of(owner, batchName ?? `ID: ${dag ?? cluster}`, submitted, from, to, manager);
    found.size(batch, cluster, 1);
    batch.held += totals.held;
    if (manager) continue;
    batch.running += totals.running + totals.suspended;
    batch.idle += totals.idle;
  }
  return found.all();
}

class Batches {
  readonly #found = new Map<string, Batch>();
  readonly #clusters: ReadonlyMap<number, ClusterView>;

  constructor(clusters: Iterable<ClusterView>) {
    this.#clusters = new Map([...clusters].map((one) => [one.cluster, one]));
  }

  /** The batch of this owner and name, extended to include these jobs. */
  of(owner: string, name: string, submitted: number, first: Id, last: Id, manager: boolean): Batch {
    const key = `${owner}\n${name}`;
    let batch = this.#found.get(key);
    if (!batch) {
      const counts = { done: 0, total: 0, running: 0, idle: 0, held: 0 };
      batch = { owner, name, submitted, ...counts, first, last, bare: manager, counted: new Set() };
      this.#found.set(key, batch);
    }
    if (submitted < batch.submitted) batch.submitted = submitted;
    if (manager) return batch;
    if (batch.bare || order(first, batch.first) < 0) batch.first = first;
    if (batch.bare || order(last, batch.last) > 0) batch.last = last;
    batch.bare = false;
    return batch;
  }

  /**
   * Adds a cluster's size: a node counts as its DAG, whose size is its number of nodes. `procs`: used if the size is
   * unknown.
   */
  size(batch: Batch, cluster: number, procs: number): void {
    if (batch.counted.has(cluster)) return;
    batch.counted.add(cluster);
    const view = this.#clusters.get(cluster);
    const root = view && this.#rootOf(view);
    if (root?.nodes) {
      if (root.cluster !== cluster && batch.counted.has(root.cluster)) return;
      batch.counted.add(root.cluster);
      batch.total += root.nodes.total;
      batch.done += root.nodes.done;
      return;
    }
    // The number of its nodes is not known yet.
    if (view?.manager) return;
    batch.total += view?.procs ?? procs;
    if (view) batch.done += view.procs - view.totals.unmaterialized - view.totals.jobs + view.totals.completed;
  }

  /** The manager of the outermost DAG. */
  #rootOf(view: ClusterView): ClusterView {
    const above = view.dag === undefined ? undefined : this.#clusters.get(view.dag);
    return above === undefined || above.cluster === view.cluster ? view : this.#rootOf(above);
  }

  all(): Batch[] {
    return [...this.#found.values()].sort((a, b) => order(a.first, b.first));
  }
}

const COUNTED: Readonly<Record<number, 'idle' | 'running' | 'held'>> = {
  1: 'idle',
  2: 'running',
  5: 'held',
  6: 'running',
  7: 'running',
};

function order(a: Id, b: Id): number {
  return a.cluster - b.cluster || a.proc - b.proc;
}
