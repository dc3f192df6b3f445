import { type JOB_STATUS, LIFE, type State } from '../job/life.ts';
import { UNIVERSE } from '../job/universe.ts';
import { readNumber } from '../job/values.ts';
import type { ClusterSummary, Queue } from '../queue/api.ts';
import { selectJobs } from './select.ts';
import { NO_JOBS, type Sums, sumOf } from '../job/totals.ts';
import type { ClusterSelection, ClusterView, Selection, Totals } from './types.ts';

const COUNTED: Readonly<Record<keyof typeof JOB_STATUS, keyof Totals>> = {
  idle: 'idle',
  running: 'running',
  removed: 'removed',
  completed: 'completed',
  held: 'held',
  transferring: 'running',
  suspended: 'suspended',
};

/** Whether the selection consists of whole clusters, so that counters answer it whatever the number of jobs. */
export function isOfClusters(selection: Selection): boolean {
  return selection.ids === undefined && selection.constraint === undefined;
}

/** The clusters of a selection for which `isOfClusters` is true, in the order of their ids. */
export async function clusterViews(queue: Queue, selection: ClusterSelection = {}): Promise<ClusterView[]> {
  const all = await queue.summaries(selection.clusters);
  const found = all.filter(({ owner }) => selection.owner === undefined || owner === selection.owner);
  const nodes = await nodesOf(queue, found);
  const views = found.map((summary) => viewOf(summary, nodes.get(summary.cluster)));
  if (selection.removedUnmade !== true) return views;
  return Promise.all(views.map((view) => withRemoved(queue, view)));
}

async function withRemoved(queue: Queue, view: ClusterView): Promise<ClusterView> {
  const { cluster, procs, totals } = view;
  if (totals.unmaterialized === 0) return view;
  return { ...view, removedUnmade: await queue.unwanted(cluster, procs - totals.unmaterialized, procs) };
}

/** The nodes of DAGs, by their managers' clusters. */
async function nodesOf(queue: Queue, found: readonly ClusterSummary[]) {
  // A DAG's manager is not a user's job, so no total counts it (as in condor_q).
  const managers = found.filter(({ universe }) => universe === UNIVERSE.scheduler).map(({ cluster }) => cluster);
  const nodes = new Map<number, NonNullable<ClusterView['nodes']>>();
  if (managers.length === 0) return nodes;
  for await (const { id, attrs } of queue.query({ clusters: managers })) {
    const total = readNumber(attrs, 'DAG_NodesTotal');
    if (total !== undefined) nodes.set(id.cluster, { total, done: readNumber(attrs, 'DAG_NodesDone') ?? 0 });
  }
  return nodes;
}

/** How many jobs are in each state: for whole clusters from counters, otherwise by reading each job. */
export async function totalsOf(queue: Queue, selection: Selection): Promise<Totals> {
  if (isOfClusters(selection)) {
    return sumOf(await clusterViews(queue, selection));
  }
  const counts: Partial<Record<State, number>> = {};
  for await (const job of selectJobs(queue, selection)) {
    if (job.attrs.get('JobUniverse') === String(UNIVERSE.scheduler)) continue;
    counts[job.state] = (counts[job.state] ?? 0) + 1;
  }
  return shown(counts, 0);
}

function viewOf(summary: ClusterSummary, nodes: ClusterView['nodes']): ClusterView {
  const { cluster, owner, batchName, submitted, counts, nextProc, total, universe, dag, procs } = summary;
  return {
    cluster,
    owner,
    ...(batchName === '' ? {} : { batchName }),
    submitted,
    procs: total,
    ...(procs === undefined ? {} : { first: procs.first, last: procs.last }),
    ...(dag === undefined ? {} : { dag }),
    manager: universe === UNIVERSE.scheduler,
    ...(nodes === undefined ? {} : { nodes }),
    totals: shown(counts, Math.max(0, total - nextProc)),
  };
}

function shown(counts: Readonly<Partial<Record<State, number>>>, unmaterialized: number): Totals {
  const sums: Sums = { ...NO_JOBS, unmaterialized };
  for (const [state, n] of Object.entries(counts) as [State, number][]) {
    sums.jobs += n;
    sums[COUNTED[LIFE[state].shows]] += n;
  }
  return sums;
}
