import type { ClusterView, JobView } from '../../index.ts';
import { numberOf, stringOf } from './ad.ts';
import { shortDate } from './dates.ts';
import { shortened } from './table.ts';
import { columns, cut, padEnd, visible, type Width } from './width.ts';

/** One line of the batched view: the jobs of a batch name, a DAG or a cluster. */
export interface Batch {
  readonly owner: string;
  readonly name: string;
  submitted: number;
  /** Procs that each cluster was submitted with. */
  readonly sizes: Map<number, number>;
  present: number;
  completed: number;
  running: number;
  idle: number;
  held: number;
  first: Id;
  last: Id;
}
type Id = JobView['id'];

/** Attributes that the batched view reads. */
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

/** By looking at each job. */
export function batchesOfJobs(jobs: Iterable<JobView>): Batch[] {
  const found = new Batches();
  for (const { id, ad } of jobs) {
    const name = stringOf(ad, 'JobBatchName') ?? `ID: ${numberOf(ad, 'DAGManJobId') ?? id.cluster}`;
    const batch = found.of(stringOf(ad, 'Owner') ?? '?', name, numberOf(ad, 'QDate') ?? 0, id, id);
    batch.present++;
    batch.sizes.set(
      id.cluster,
      numberOf(ad, 'TotalSubmitProcs') ?? Math.max(batch.sizes.get(id.cluster) ?? 0, id.proc + 1),
    );
    const counted = COUNTED[numberOf(ad, 'JobStatus') ?? 0];
    if (counted) batch[counted]++;
  }
  return found.all();
}

/** From the queue's counters. */
export function batchesOfClusters(clusters: Iterable<ClusterView>): Batch[] {
  const found = new Batches();
  for (const { cluster, owner, batchName, dag, submitted, procs, first, last, totals } of clusters) {
    if (first === undefined || last === undefined) continue;
    const name = batchName ?? `ID: ${dag ?? cluster}`;
    const batch = found.of(owner, name, submitted, { cluster, proc: first }, { cluster, proc: last });
    batch.present += totals.jobs;
    batch.sizes.set(cluster, procs);
    batch.completed += totals.completed;
    batch.running += totals.running + totals.suspended;
    batch.idle += totals.idle;
    batch.held += totals.held;
  }
  return found.all();
}

class Batches {
  readonly #found = new Map<string, Batch>();

  /** The batch of that owner and name, widened to these jobs. */
  of(owner: string, name: string, submitted: number, first: Id, last: Id): Batch {
    const key = `${owner}\n${name}`;
    let batch = this.#found.get(key);
    if (!batch) {
      const counts = { present: 0, completed: 0, running: 0, idle: 0, held: 0 };
      batch = { owner, name, submitted, sizes: new Map(), ...counts, first, last };
      this.#found.set(key, batch);
    }
    if (submitted < batch.submitted) batch.submitted = submitted;
    if (order(first, batch.first) < 0) batch.first = first;
    if (order(last, batch.last) > 0) batch.last = last;
    return batch;
  }

  all(): Batch[] {
    return [...this.#found.values()].sort((a, b) => order(a.first, b.first));
  }
}

const COUNTED: Readonly<Record<number, 'idle' | 'running' | 'completed' | 'held'>> = {
  1: 'idle',
  2: 'running',
  4: 'completed',
  5: 'held',
  6: 'running',
  7: 'running',
};

function order(a: Id, b: Id): number {
  return a.cluster - b.cluster || a.proc - b.proc;
}

/** The lines of `condor_q`, from the column heads on. The HOLD column is there when a job is held, or nothing is shown. */
export function batchLines(rows: readonly Batch[], width: Width): string[] {
  const hold = rows.length === 0 || rows.some((row) => row.held > 0);
  const ownerWidth = Math.max(5, ...rows.map((row) => columns(visible(row.owner))));
  const longest = rows.length === 0 ? 12 : Math.max(10, ...rows.map((row) => columns(visible(row.name))));
  // The counts are worth more than the end of a name.
  const counted = ownerWidth + 2 + 7 * (hold ? 5 : 4) + Math.max(7, ...rows.map((row) => range(row).length));
  const dated = width === undefined || width >= counted + 13 + Math.min(longest, 10);
  const others = counted + (dated ? 13 : 0);
  const nameWidth = width === undefined ? longest : Math.max(10, Math.min(longest, width - others));
  const head = `${'OWNER'.padEnd(ownerWidth)} ${'BATCH_NAME'.padEnd(nameWidth)}${dated ? '    SUBMITTED' : ''}   DONE   RUN    IDLE${hold ? '   HOLD' : ''}  TOTAL JOB_IDS`;
  return [
    cut(head, width),
    ...rows.map((row) => {
      const total = [...row.sizes.values()].reduce((sum, size) => sum + size, 0);
      const counts = [total - row.present + row.completed, row.running, row.idle, ...(hold ? [row.held] : []), total];
      const cells = counts.map((n) => (n > 0 ? String(n) : '_').padStart(7)).join('');
      const names = `${padEnd(visible(row.owner), ownerWidth)} ${padEnd(shortened(visible(row.name), nameWidth), nameWidth)}`;
      const date = dated ? `  ${shortDate(row.submitted)}` : '';
      return cut(`${names}${date}${cells} ${range(row)}`, width);
    }),
  ];
}

/** `39.0`, `820.0-999`, or `39.0 ... 42.0`. */
function range({ first, last }: Batch): string {
  const start = `${first.cluster}.${first.proc}`;
  if (first.cluster !== last.cluster) return `${start} ... ${last.cluster}.${last.proc}`;
  return first.proc === last.proc ? start : `${start}-${last.proc}`;
}
