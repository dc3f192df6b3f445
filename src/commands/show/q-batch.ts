import type { ClusterView, JobView } from '../../index.ts';
import { UNIVERSE } from '../../job/universe.ts';
import { numberOf, stringOf } from './ad.ts';
import { shortDate } from './dates.ts';
import { shortened } from './table.ts';
import { columns, cut, padEnd, visible, type Width } from './width.ts';

/** A line of the batched view: the jobs of a batch name, a DAG or a cluster. */
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
  for (const { id, ad } of jobs) {
    const dag = numberOf(ad, 'DAGManJobId');
    const manager = numberOf(ad, 'JobUniverse') === UNIVERSE.scheduler;
    const name = stringOf(ad, 'JobBatchName') ?? `ID: ${dag ?? id.cluster}`;
    const batch = found.of(stringOf(ad, 'Owner') ?? '?', name, numberOf(ad, 'QDate') ?? 0, id, id, manager);
    const is = COUNTED[numberOf(ad, 'JobStatus') ?? 0];
    // Done jobs are counted by cluster. A held manager counts, because it holds up its DAG.
    if (is && (!manager || is === 'held')) batch[is]++;
    found.size(batch, id.cluster, numberOf(ad, 'TotalSubmitProcs') ?? 1);
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

/**
 * The lines of `condor_q` including the headings. The HOLD column appears if a job is held, or if there are no lines.
 */
export function batchLines(rows: readonly Batch[], width: Width): string[] {
  const hold = rows.length === 0 || rows.some((row) => row.held > 0);
  const heads = ['   DONE', '   RUN ', '   IDLE', ...(hold ? ['   HOLD'] : []), '  TOTAL'];
  const counts = rows.map(({ done, running, idle, held, total }) =>
    [done, running, idle, ...(hold ? [held] : []), total].map((n) => (n > 0 ? String(n) : '_')),
  );
  // A number of any size has a blank before it.
  const widths = heads.map((head, i) => Math.max(head.length, ...counts.map((row) => (row[i]?.length ?? 0) + 1)));
  const cells = (texts: readonly string[]) => texts.map((text, i) => text.padStart(widths[i] ?? 0)).join('');
  const ownerWidth = Math.max(5, ...rows.map((row) => columns(visible(row.owner))));
  const longest = rows.length === 0 ? 12 : Math.max(10, ...rows.map((row) => columns(visible(row.name))));
  // The counts matter more than the end of a name.
  const counted =
    ownerWidth + 2 + widths.reduce((a, b) => a + b, 0) + Math.max(7, ...rows.map((row) => range(row).length));
  const dated = width === undefined || width >= counted + 13 + Math.min(longest, 10);
  const others = counted + (dated ? 13 : 0);
  const nameWidth = width === undefined ? longest : Math.max(10, Math.min(longest, width - others));
  const head = `${'OWNER'.padEnd(ownerWidth)} ${'BATCH_NAME'.padEnd(nameWidth)}${dated ? '    SUBMITTED' : ''}`;
  return [
    cut(`${head}${cells(heads)} JOB_IDS`, width),
    ...rows.map((row, i) => {
      const names = `${padEnd(visible(row.owner), ownerWidth)} ${padEnd(shortened(visible(row.name), nameWidth), nameWidth)}`;
      const date = dated ? `  ${shortDate(row.submitted)}` : '';
      return cut(`${names}${date}${cells(counts[i] ?? [])} ${range(row)}`, width);
    }),
  ];
}

/** `39.0`, `820.0-999`, or `39.0 ... 42.0`. */
function range({ first, last }: Batch): string {
  const start = `${first.cluster}.${first.proc}`;
  if (first.cluster !== last.cluster) return `${start} ... ${last.cluster}.${last.proc}`;
  return first.proc === last.proc ? start : `${start}-${last.proc}`;
}
