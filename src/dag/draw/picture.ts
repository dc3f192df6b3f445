import { levels } from '../cycles.ts';
import { type DagGraph, FLAG, nameOf } from '../language/graph.ts';

/** A drawn box: one node, or all nodes of one level and category. */
export interface Box {
  readonly label: string;
  readonly level: number;
  readonly nodes: readonly number[];
}

export interface Picture {
  readonly boxes: readonly Box[];
  /** Lines between boxes, each with the number of dependencies it stands for. */
  readonly lines: readonly { readonly from: number; readonly to: number; readonly count: number }[];
  /** Whether a box can stand for several nodes. */
  readonly grouped: boolean;
}

/** Up to this many nodes are drawn one by one. */
const MOST_SINGLE = 60;
/** A grouped drawing has at most this many rows; in a deeper DAG, neighbouring levels share a row. */
const MOST_ROWS = 20;

/** Draws few nodes one by one and groups many by level and category (or by the name without its trailing digits). */
export function pictureOf(dag: DagGraph, mostSingle = MOST_SINGLE): Picture {
  const level = levels(dag);
  const shown = [...dag.order, ...dag.services];
  const grouped = shown.length > mostSingle;
  const deepest = shown.reduce((most, node) => Math.max(most, level[node] ?? 0), 0);
  const rowHeight = grouped ? Math.ceil((deepest + 1) / MOST_ROWS) : 1;
  const rowOf = (node: number): number => {
    if (node === dag.final) return Math.floor(deepest / rowHeight) + 1;
    return Math.floor(Math.max(0, level[node] ?? 0) / rowHeight);
  };
  const keyOf = (node: number): string => (grouped ? `${rowOf(node)} ${familyOf(dag, node)}` : String(node));
  const groups = new Map<string, number[]>();
  for (const node of shown) {
    const key = keyOf(node);
    const list = groups.get(key);
    if (list === undefined) groups.set(key, [node]);
    else list.push(node);
  }
  const boxOf = new Int32Array(dag.size).fill(-1);
  const boxes = [...groups.values()].map((nodes, i): Box => {
    for (const node of nodes) boxOf[node] = i;
    const node = nodes[0] ?? 0;
    return { label: nodes.length === 1 ? labelOf(dag, node) : groupLabel(dag, nodes), level: rowOf(node), nodes };
  });
  const lines = linesBetween(dag, shown, boxOf).filter(({ from, to }) => boxes[from]?.level !== boxes[to]?.level);
  return { boxes, lines, grouped };
}

function linesBetween(dag: DagGraph, shown: readonly number[], boxOf: Int32Array): Picture['lines'] {
  const counts = new Map<number, number>();
  const many = dag.size + 1;
  for (const node of shown) {
    for (let i = dag.edges.childStart[node] ?? 0; i < (dag.edges.childStart[node + 1] ?? 0); i++) {
      const key = (boxOf[node] ?? 0) * many + (boxOf[dag.edges.childList[i] ?? 0] ?? 0);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  return [...counts].map(([key, count]) => ({ from: Math.floor(key / many), to: key % many, count }));
}

/** A join is made by the parser between two groups of nodes, so its name means nothing to the user. */
function labelOf(dag: DagGraph, node: number): string {
  return isJoin(dag, node) ? '•' : nameOf(dag, node);
}

function isJoin(dag: DagGraph, node: number): boolean {
  return ((dag.flags[node] ?? 0) & FLAG.join) !== 0;
}

/** The category or, without one, the prefix of the node's name: `fit_0017` belongs to the family `fit_`. */
function familyOf(dag: DagGraph, node: number): string {
  const category = dag.categories[dag.category[node] ?? -1];
  if (category !== undefined) return category.name;
  if (isJoin(dag, node)) return 'join';
  return nameOf(dag, node).replace(/[0-9][0-9_.-]*$/, '');
}

function groupLabel(dag: DagGraph, nodes: readonly number[]): string {
  const family = familyOf(dag, nodes[0] ?? 0);
  return family === '' ? `${nameOf(dag, nodes[0] ?? 0)} …` : family;
}
