import { Placement, withProxy } from '../enqueue/placement.ts';
import { proxyCheck } from '../enqueue/proxy-check.ts';
import type { SiteChooser } from '../enqueue/site-choice.ts';
import { GryphusError } from '../errors.ts';
import type { Attrs } from '../job/attrs.ts';
import { isEnd, type State } from '../job/life.ts';
import { quoted, readNumber } from '../job/values.ts';
import type { Patience } from './patience.ts';
import type { ClusterRecord, Lease, ProcInput, Queue } from '../queue/api.ts';
import { materialize, type ProcAd } from '../submit/api.ts';

/** Maximum number of procs created in one write. */
const AT_ONCE = 5000;
/** Why a proc is removed as it is created. */
const REMOVED = 'via gryphus rm, before it was materialized';

/**
 * Late materialization: creates as many procs of each waiting cluster as its limits allow (HTCondor's manual,
 * `max_materialize`, `max_idle`). A proc with a site or proxy of its own is routed as it would have been at submit. If
 * a proc cannot be created (for example, because of an invalid macro), its cluster is paused with the reason, as
 * HTCondor's factory does.
 */
export async function materializeAll(
  queue: Queue,
  lease: Lease,
  choose: () => Promise<SiteChooser>,
  patience: Pick<Patience, 'with' | 'waitMs'>,
): Promise<void> {
  let chooser: SiteChooser | undefined;
  const check = proxyCheck();
  for (const { cluster } of await queue.unmaterialized()) {
    const what = `materializing the procs of cluster ${cluster}`;
    if (patience.waitMs(what) > 0) continue;
    await patience.with(what, async () => {
      const full = await queue.cluster(cluster);
      if (!full?.digest || (readNumber(full.attrs, 'JobMaterializePaused') ?? 0) !== 0) return;
      const may = mayCreate(
        full,
        readNumber(full.attrs, 'JobMaterializeLimit'),
        readNumber(full.attrs, 'JobMaterializeMaxIdle'),
      );
      const to = Math.min(full.total, full.nextProc + AT_ONCE);
      const unwanted = await queue.unwanted(full.cluster, full.nextProc, to);
      const count = withUnwanted(full.nextProc, to, may, unwanted);
      if (count <= 0) return;
      const made = materialize(full.digest, { cluster: full.cluster, fromProc: full.nextProc, count });
      chooser ??= await choose();
      const { procs, wrong } = placed(made.procs, full, chooser, check, unwanted);
      // If a site is not configured now, the cluster's procs are created later; other clusters continue.
      if (procs.length > 0) {
        const done = made.done && wrong === undefined;
        await queue.materialize(full.cluster, { nextProc: full.nextProc, procs, done, lease, removedBecause: REMOVED });
      }
      if (wrong?.code === 'bad-input') {
        await queue.editCluster(full.cluster, {
          JobMaterializePaused: '1',
          JobMaterializePauseReason: quoted(
            `Job ${full.nextProc + procs.length} cannot be materialized: ${wrong.message}`,
          ),
        });
      }
    });
  }
}

/** The procs up to the first that cannot be created, and the error of that one. */
function placed(
  made: Iterable<ProcAd>,
  cluster: ClusterRecord & { readonly attrs: Attrs },
  chooser: SiteChooser,
  check: ReturnType<typeof proxyCheck>,
  unwanted: ReadonlySet<number>,
): { readonly procs: ProcInput[]; readonly wrong?: GryphusError } {
  const procs: ProcInput[] = [];
  try {
    const placement = new Placement(chooser, cluster.owner, cluster.attrs.toRecord());
    for (const { proc, attrs } of made) {
      const all = withProxy(attrs, check);
      procs.push({ proc, attrs: all, ...placement.of(all), ...(unwanted.has(proc) ? { state: 'removed' } : {}) });
    }
    return { procs };
  } catch (thrown) {
    if (!(thrown instanceof GryphusError)) throw thrown;
    if (thrown.code === 'site-unknown' || thrown.code === 'bad-config') return { procs: [], wrong: thrown };
    if (thrown.code === 'bad-input') return { procs, wrong: thrown };
    throw thrown;
  }
}

/** How many procs from `next` on, below `to`, are created when `may` may be: those that are removed at once count for nothing. */
function withUnwanted(next: number, to: number, may: number, unwanted: ReadonlySet<number>): number {
  let left = may;
  let proc = next;
  while (proc < to && (unwanted.has(proc) || left-- > 0)) proc++;
  return proc - next;
}

/** How many more procs may be created for a cluster now. */
export function mayCreate(cluster: ClusterRecord, limit: number | undefined, maxIdle: number | undefined): number {
  const counts = Object.entries(cluster.counts) as [State, number][];
  const live = counts.filter(([state]) => !isEnd(state)).reduce((sum, [, jobs]) => sum + jobs, 0);
  const idle = counts.filter(([state]) => state === 'idle').reduce((sum, [, jobs]) => sum + jobs, 0);
  const left = cluster.total - cluster.nextProc;
  return Math.min(
    left,
    AT_ONCE,
    (limit ?? Number.POSITIVE_INFINITY) - live,
    (maxIdle ?? Number.POSITIVE_INFINITY) - idle,
  );
}
