import type { State } from '../job/life.ts';
import { rowsOf } from './answers.ts';
import type { ClusterSummary } from './api.ts';
import { clusterIds } from './read.ts';
import { stateNamed } from './record.ts';
import type { QueueContext } from './context.ts';

/** Clusters in one exchange: a running script blocks all other clients. */
const AT_ONCE = 500;

/** Summaries of clusters in the order of their ids; clusters that no longer exist are omitted. */
export async function summaries(context: QueueContext, wanted?: readonly number[]): Promise<ClusterSummary[]> {
  const clusters = wanted ? [...new Set(wanted)].sort((a, b) => a - b) : await clusterIds(context, 'clusters');
  const found: ClusterSummary[] = [];
  for (let from = 0; from < clusters.length; from += AT_ONCE) {
    const some = rowsOf(await context.db.script('summaries', clusters.slice(from, from + AT_ONCE)));
    found.push(...some.map(summary));
  }
  return found;
}

function summary(fields: readonly string[]): ClusterSummary {
  const [cluster, owner = '', batchName = '', at, next, total, universe, dag, first, last, ...groups] = fields;
  const counts: Partial<Record<State, number>> = {};
  for (let i = 0; i + 1 < groups.length; i += 2) {
    const state = stateNamed(groups[i]);
    if (state !== undefined) counts[state] = (counts[state] ?? 0) + Number(groups[i + 1]);
  }
  return {
    cluster: Number(cluster),
    owner,
    batchName,
    submitted: Number(at),
    counts,
    nextProc: Number(next),
    total: Number(total),
    ...(universe ? { universe: Number(universe) } : {}),
    ...(dag ? { dag: Number(dag) } : {}),
    ...(first ? { procs: { first: Number(first), last: Number(last) } } : {}),
  };
}
