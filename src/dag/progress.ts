import * as z from 'zod';
import { count, maybe, type Read, text } from '../util/schema.ts';
import { levels } from './cycles.ts';
import { type Core, nodeCount, readyCount, statusOf, unreadyCount } from './engine/core.ts';
import { DAG_STATUS_NAMES, STATUS, STATUS_NAMES } from './engine/status.ts';
import { type DagGraph, nameOf, parentsOf } from './language/graph.ts';

/** The longest chain of nodes that are not done: the DAG takes at least as long as running them one after the other. */
const CRITICAL_PATH = z.object({
  /** The number of nodes in it. */
  length: z.number(),
  /** Its first few nodes, so that the record of a DAG's end does not grow with the DAG. */
  nodes: z.array(z.object({ node: z.string(), status: z.string() })),
  /** What its first node waits for, in one sentence; empty if nothing is left. */
  waitsFor: z.string(),
});
export type CriticalPath = Read<typeof CRITICAL_PATH>;

/** Nodes that ran more than once after failures. A record that an older build wrote of a DAG's end lacks it. */
const RETRIES = z.object({
  /** Retries of all nodes together. */
  made: count,
  /** The first few such nodes: how often each was retried, and how often it may be. */
  nodes: z.array(z.object({ node: text, made: count, most: count })),
});

/** What `dag status` shows. */
export const DAG_PROGRESS = z.object({
  total: z.number(),
  done: z.number(),
  pre: z.number(),
  queued: z.number(),
  post: z.number(),
  ready: z.number(),
  unready: z.number(),
  failed: z.number(),
  futile: z.number(),
  held: z.number(),
  status: z.string(),
  /** The fraction of all nodes that are done, 0 to 1. */
  fraction: z.number(),
  criticalPath: CRITICAL_PATH,
  /** The first few failed nodes, and why they failed. */
  failures: z.array(z.object({ node: z.string(), error: z.string() })),
  retries: maybe(RETRIES),
});
export type DagProgress = Read<typeof DAG_PROGRESS>;

const MOST_FAILURES = 20;
const MOST_OF_PATH = 100;
const MOST_RETRIED = 20;

export function progressOf(core: Core): DagProgress {
  const { counts } = core;
  const total = nodeCount(core, true);
  const failures: { node: string; error: string }[] = [];
  for (const [node, error] of core.errors) {
    if (core.status[node] !== STATUS.error) continue;
    failures.push({ node: nameOf(core.dag, node), error });
    if (failures.length === MOST_FAILURES) break;
  }
  return {
    total,
    done: counts.done,
    pre: counts.pre,
    queued: counts.submitted,
    post: counts.post,
    ready: readyCount(core),
    unready: unreadyCount(core),
    failed: counts.failed,
    futile: counts.futile,
    held: counts.held,
    status: DAG_STATUS_NAMES[core.dagStatus],
    fraction: total === 0 ? 1 : counts.done / total,
    criticalPath: criticalPath(core),
    failures,
    retries: retriesOf(core),
  };
}

function retriesOf({ dag, retries, retryMax }: Core): Read<typeof RETRIES> {
  let made = 0;
  const nodes: { node: string; made: number; most: number }[] = [];
  for (const [node, times] of retries.entries()) {
    if (times === 0) continue;
    made += times;
    if (nodes.length < MOST_RETRIED) nodes.push({ node: nameOf(dag, node), made: times, most: retryMax[node] ?? 0 });
  }
  return { made, nodes };
}

/** Whether a node is running or can still run. */
function isAhead(core: Core, node: number): boolean {
  const status = core.status[node];
  return status !== STATUS.done && status !== STATUS.error && status !== STATUS.futile;
}

/** O(nodes + edges). */
export function criticalPath(core: Core): CriticalPath {
  const { dag } = core;
  const { childStart, childList } = dag.edges;
  const byLevel = nodesFromTheEnd(dag);
  const length = new Int32Array(dag.size);
  const next = new Int32Array(dag.size).fill(-1);
  let first = -1;
  for (const node of byLevel) {
    if (!isAhead(core, node)) continue;
    let best = 0;
    for (let i = childStart[node] ?? 0; i < (childStart[node + 1] ?? 0); i++) {
      const child = childList[i] ?? 0;
      if ((length[child] ?? 0) > best) {
        best = length[child] ?? 0;
        next[node] = child;
      }
    }
    length[node] = best + 1;
    if (first < 0 || (length[node] ?? 0) > (length[first] ?? 0)) first = node;
  }
  const nodes: { node: string; status: string }[] = [];
  for (let node = first; node >= 0 && nodes.length < MOST_OF_PATH; node = next[node] ?? -1) {
    nodes.push({ node: nameOf(dag, node), status: STATUS_NAMES[statusOf(core, node)] });
  }
  return { length: length[first] ?? 0, nodes, waitsFor: first < 0 ? '' : waitsFor(core, first) };
}

function nodesFromTheEnd(dag: DagGraph): Int32Array {
  const level = levels(dag);
  return dag.order.slice().sort((a, b) => (level[b] ?? 0) - (level[a] ?? 0));
}

function someJobs(some: number, of: number, node: string, cluster: number): string {
  return `${some} of ${of} jobs of ${node} (cluster ${cluster}) ${some === 1 ? 'is' : 'are'}`;
}

function waitsFor(core: Core, node: number): string {
  const name = nameOf(core.dag, node);
  const jobs = core.jobs.get(node);
  switch (statusOf(core, node)) {
    case STATUS.preRun:
      return `The PRE script of ${name} runs.`;
    case STATUS.postRun:
      return `The POST script of ${name} runs.`;
    case STATUS.submitted: {
      if (jobs === undefined) return `${name} is being submitted.`;
      if (jobs.procs === 1) {
        const job = `The job of ${name} (cluster ${jobs.cluster})`;
        return jobs.held > 0 ? `${job} is held; release it.` : `${job} is in the queue.`;
      }
      if (jobs.held > 0) return `${someJobs(jobs.held, jobs.procs, name, jobs.cluster)} held; release them.`;
      return `${someJobs(jobs.queued, jobs.procs, name, jobs.cluster)} in the queue.`;
    }
    case STATUS.ready: {
      const waits = [...parentsOf(core.dag, node)].filter((p) => core.status[p] !== STATUS.done);
      if (waits.length > 0)
        return `${name} waits for ${waits
          .slice(0, 5)
          .map((p) => nameOf(core.dag, p))
          .join(', ')}.`;
      const category = core.dag.categories[core.dag.category[node] ?? -1];
      if (core.halted) return 'The DAG is halted.';
      return category === undefined
        ? `${name} is ready; a throttle keeps it out of the queue.`
        : `${name} is ready; its category ${category.name} lets ${category.limit} into the queue at once.`;
    }
    case STATUS.notReady:
    case STATUS.done:
    case STATUS.error:
    case STATUS.futile:
      return `${name} runs when all others have ended.`;
  }
}
