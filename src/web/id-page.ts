import type { ClusterView, Gryphus, JobId, JobView } from '../index.ts';
import type { TablePage, TableWish } from './job-table.ts';
import { ROW_ATTRIBUTES, type Row, rowOf } from './row.ts';

/** How many ids one look at the queue names, and how many of a cluster with gaps are looked at for one page. */
const AT_ONCE = 1000;
const MOST = 20_000;
/** So many gaps cost no second look. */
const SPARE = 50;

/**
 * A page of all jobs by id, found by the clusters' counters: what it costs grows with the clusters, not with their jobs.
 * `undefined` if it lies in the middle of a large cluster with gaps.
 */
export async function pageById(
  gryphus: Pick<Gryphus, 'clusters' | 'queryChunks'>,
  { offset, limit, descending }: Pick<TableWish, 'offset' | 'limit' | 'descending'>,
): Promise<TablePage | undefined> {
  const clusters = await gryphus.clusters();
  const all = clusters.reduce((sum, { totals }) => sum + totals.jobs, 0);
  const rows: Row[] = [];
  let before = 0;
  for (const view of descending ? clusters.toReversed() : clusters) {
    const from = Math.max(0, offset - before);
    const to = Math.min(view.totals.jobs, offset + limit - before);
    before += view.totals.jobs;
    if (from >= to) continue;
    const some = await rowsOf(gryphus, view, descending, from, to);
    if (some === undefined) return undefined;
    rows.push(...some);
    if (before >= offset + limit) break;
  }
  return { found: all, all, rows };
}

/** Those of a cluster from the `from`th to before the `to`th, counted from its end if `descending`. */
async function rowsOf(
  gryphus: Pick<Gryphus, 'queryChunks'>,
  { cluster, first = 0, last = -1, totals }: ClusterView,
  descending: boolean,
  from: number,
  to: number,
): Promise<Row[] | undefined> {
  const ids = (start: number, end: number): JobId[] => {
    const count = Math.max(0, Math.min(end, last - first + 1) - start);
    return Array.from({ length: count }, (_, i) => ({
      cluster,
      proc: descending ? last - start - i : first + start + i,
    }));
  };
  const inOrder = (jobs: readonly JobView[]) =>
    [...jobs].sort((a, b) => (descending ? b.id.proc - a.id.proc : a.id.proc - b.id.proc)).map(rowOf);
  if (totals.jobs > last - first) return inOrder(await read(gryphus, ids(from, to)));
  const rows: Row[] = [];
  for (let at = 0; rows.length < to && first + at <= last; ) {
    if (at >= MOST) return undefined;
    const end = at + Math.min(AT_ONCE, to - rows.length + SPARE);
    rows.push(...inOrder(await read(gryphus, ids(at, end))));
    at = end;
  }
  return rows.slice(from, to);
}

async function read(gryphus: Pick<Gryphus, 'queryChunks'>, ids: readonly JobId[]): Promise<JobView[]> {
  const found: JobView[] = [];
  for await (const jobs of gryphus.queryChunks({ ids, attributes: ROW_ATTRIBUTES })) found.push(...jobs);
  return found;
}
