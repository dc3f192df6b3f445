import { Placement, withProxy } from '../enqueue/placement.ts';
import { proxyCheck } from '../enqueue/proxy-check.ts';
import type { SiteChooser } from '../enqueue/site-choice.ts';
import { GryphusError } from '../errors.ts';
import type { Attrs } from '../job/attrs.ts';
import { isEnd, type State } from '../job/life.ts';
import { readNumber } from '../job/values.ts';
import type { ClusterRecord, Lease, ProcInput, Queue } from '../queue/api.ts';
import { materialize, type ProcAd } from '../submit/api.ts';

/** Procs made in one write at most. */
const AT_ONCE = 5000;

/**
 * Late materialization: makes as many procs of each waiting cluster as its limits leave room for (HTCondor's manual,
 * `max_materialize`, `max_idle`). A proc with a site or a proxy of its own goes where it would have gone at the submit.
 */
export async function materializeAll(queue: Queue, lease: Lease, choose: () => Promise<SiteChooser>): Promise<void> {
  let chooser: SiteChooser | undefined;
  const check = proxyCheck();
  for (const waiting of await queue.unmaterialized()) {
    const full = await queue.cluster(waiting.cluster);
    if (!full?.digest || (readNumber(full.attrs, 'JobMaterializePaused') ?? 0) !== 0) continue;
    const count = room(
      full,
      readNumber(full.attrs, 'JobMaterializeLimit'),
      readNumber(full.attrs, 'JobMaterializeMaxIdle'),
    );
    if (count <= 0) continue;
    const made = materialize(full.digest, { cluster: full.cluster, fromProc: full.nextProc, count });
    chooser ??= await choose();
    const procs = placed(made.procs, full, chooser, check);
    // Its site is not configured now; its other jobs go on.
    if (procs === undefined) continue;
    await queue.materialize(full.cluster, { nextProc: full.nextProc, procs, done: made.done, lease });
  }
}

/** `undefined` where one has no site that is known. */
function placed(
  procs: Iterable<ProcAd>,
  cluster: ClusterRecord & { readonly attrs: Attrs },
  chooser: SiteChooser,
  check: ReturnType<typeof proxyCheck>,
): ProcInput[] | undefined {
  try {
    const placement = new Placement(chooser, cluster.owner, cluster.attrs.toRecord());
    return [...procs].map(({ proc, attrs }) => {
      const all = withProxy(attrs, check);
      return { proc, attrs: all, ...placement.of(all) };
    });
  } catch (thrown) {
    if (thrown instanceof GryphusError && (thrown.code === 'site-unknown' || thrown.code === 'bad-config'))
      return undefined;
    throw thrown;
  }
}

/** How many more procs a cluster may have now. */
export function room(cluster: ClusterRecord, limit: number | undefined, maxIdle: number | undefined): number {
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
