import { type DagGraph, nameOf, placeOf } from './language/graph.ts';
import type { Problem } from './language/problem.ts';

/**
 * Returns the nodes of one cycle, with the first repeated at the end, or `undefined` if there is no cycle. Depth first
 * without recursion: O(nodes + edges) at any depth.
 */
export function findCycle(dag: DagGraph): readonly number[] | undefined {
  const { childStart, childList } = dag.edges;
  const state = new Uint8Array(dag.size); // 0 new, 1 on the path, 2 done
  const next = new Int32Array(dag.size);
  const path: number[] = [];
  for (let root = 0; root < dag.size; root++) {
    if (state[root] !== 0) continue;
    path.push(root);
    state[root] = 1;
    next[root] = childStart[root] ?? 0;
    while (path.length > 0) {
      const node = path.at(-1) ?? 0;
      const at = next[node] ?? 0;
      if (at >= (childStart[node + 1] ?? 0)) {
        state[node] = 2;
        path.pop();
        continue;
      }
      next[node] = at + 1;
      const child = childList[at] ?? 0;
      if (state[child] === 1) return [...path.slice(path.indexOf(child)), child];
      if (state[child] !== 0) continue;
      state[child] = 1;
      next[child] = childStart[child] ?? 0;
      path.push(child);
    }
  }
  return undefined;
}

/** The errors to report for a cyclic DAG: the names of the cycle's nodes, at the line that defines the first. */
export function cycleProblems(dag: DagGraph): readonly Problem[] {
  const cycle = findCycle(dag);
  if (cycle === undefined) return [];
  const names = cycle.map((node) => nameOf(dag, node)).join(' -> ');
  return [
    {
      ...placeOf(dag, cycle[0] ?? 0),
      severity: 'error',
      message: `Cycle detected: ${names}`,
      remedy: 'Remove one of the dependencies among these nodes.',
    },
  ];
}

/** Length of the longest path from a root to each node; -1 for nodes on a cycle or below one. */
export function levels(dag: DagGraph): Int32Array {
  const { childStart, childList, parentStart } = dag.edges;
  const level = new Int32Array(dag.size).fill(-1);
  const waiting = new Int32Array(dag.size);
  const queue: number[] = [];
  for (let node = 0; node < dag.size; node++) {
    waiting[node] = (parentStart[node + 1] ?? 0) - (parentStart[node] ?? 0);
    if (waiting[node] === 0) queue.push(node);
  }
  const depth = new Int32Array(dag.size);
  for (let at = 0; at < queue.length; at++) {
    const node = queue[at] ?? 0;
    level[node] = depth[node] ?? 0;
    for (let i = childStart[node] ?? 0; i < (childStart[node + 1] ?? 0); i++) {
      const child = childList[i] ?? 0;
      depth[child] = Math.max(depth[child] ?? 0, (level[node] ?? 0) + 1);
      waiting[child] = (waiting[child] ?? 0) - 1;
      if (waiting[child] === 0) queue.push(child);
    }
  }
  return level;
}
