import type { AdText, ClusterView, Gryphus } from '../../index.ts';
import { ATTRIBUTES, SlurmJob } from './slurm-job.ts';
import { expand } from './array-indices.ts';

/** What a task that has not started shares with others of its array. */
const SHARED = new Set(
  'GryphusArray JobBatchName Cmd Owner BatchQueue GryphusSite BatchProject GryphusAccount RequestCpus RequestGPUs MachineCount RequestMemory BatchRuntime QDate Iwd JobDescription JobPrio'.split(
    ' ',
  ),
);

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
    const views = await gryphus.clusters(clusters && { clusters });
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

  async *rest(): AsyncGenerator<SlurmJob> {
    for (const { cluster, procs, totals } of this.#late.values()) {
      const seen = this.#seen.get(cluster);
      const like = seen?.like ?? (await this.#anyOf(cluster));
      if (!like || like.array === '') continue;
      const indices = [...expand(like.array)];
      const shared = Object.fromEntries(Object.entries(like.ad).filter(([name]) => SHARED.has(name)));
      for (let proc = procs - totals.unmaterialized; proc < procs; proc++) {
        if (seen?.procs.has(proc)) continue;
        const ad: AdText = { ...shared, GryphusArrayTask: String(indices[proc] ?? proc) };
        yield new SlurmJob({ cluster, proc }, ad);
      }
    }
  }

  async #anyOf(cluster: number): Promise<SlurmJob | undefined> {
    for await (const { id, ad } of this.#gryphus.jobs({ clusters: [cluster], attributes: ATTRIBUTES, limit: 1 }))
      return new SlurmJob(id, ad);
    return undefined;
  }
}
