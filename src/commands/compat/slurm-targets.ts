import type { Gryphus, JobView } from '../../index.ts';
import type { Given } from './options.ts';
import { ATTRIBUTES, SlurmJob } from './slurm-job.ts';
import { isNamed, type Named } from './slurm-jobs.ts';
import { UnmadeTasks } from './unmade-tasks.ts';

/** Jobs in the queue that a command was given. */
export interface Targets {
  /** Whole ones, so that no more of their jobs are made. */
  readonly clusters: readonly number[];
  readonly ids: readonly JobView['id'][];
  /** Clusters of which there is a job. */
  readonly seen: ReadonlySet<number>;
}

/** `fits`: narrows the named jobs, or all if none is named. `unmade`: tasks of arrays that the queue has not made yet, too. */
export async function targetsOf(
  gryphus: Gryphus,
  named: readonly Named[] | undefined,
  { fits, unmade = false }: { readonly fits?: (job: SlurmJob) => boolean; readonly unmade?: boolean } = {},
): Promise<Targets> {
  const ids: JobView['id'][] = [];
  const seen = new Set<number>();
  const known = named && [...new Set(named.map(({ cluster }) => cluster))];
  const waiting = unmade ? await UnmadeTasks.count(gryphus, known) : undefined;
  const take = (job: SlurmJob) => {
    if (!isNamed(job, named) || fits?.(job) === false) return;
    seen.add(job.cluster);
    ids.push({ cluster: job.cluster, proc: job.proc });
  };
  for await (const view of gryphus.query({ attributes: ATTRIBUTES, ...(known && { clusters: known }) })) {
    const job = new SlurmJob(view.id, view.ad);
    waiting?.see(job);
    take(job);
  }
  // Narrowed, an array is no longer whole.
  const whole = fits === undefined ? (named ?? []).filter(({ tasks }) => tasks === undefined) : [];
  if (waiting !== undefined) for await (const jobs of waiting.rest(false)) jobs.forEach(take);
  const clusters = whole.map(({ cluster }) => cluster).filter((cluster) => seen.has(cluster));
  return { clusters, ids: ids.filter(({ cluster }) => !clusters.includes(cluster)), seen };
}

export async function actOn(
  gryphus: Gryphus,
  action: 'remove' | 'hold' | 'release',
  { clusters, ids }: Targets,
  reason: string,
): Promise<void> {
  if (clusters.length > 0) await gryphus.act(action, { clusters, reason });
  if (ids.length > 0) await gryphus.act(action, { ids, reason });
}

/** A test for `--clusters`: a site, or the pool, is a cluster with one partition. */
export function inClusters({ values }: Given): (job: Pick<SlurmJob, 'partition'>) => boolean {
  const list = values.get('clusters')?.split(',');
  return ({ partition }) => list === undefined || list.includes('all') || list.includes(partition);
}
