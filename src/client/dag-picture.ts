import { type DagGraph, nameOf, pictureOf, type ReplayedDag, STATUS, type Status, STATUS_NAMES } from '../dag/api.ts';

export interface PictureWish {
  /** Only this node and what stands within `steps` of it, node by node. */
  readonly around?: string;
  /** Default 1. */
  readonly steps?: number;
}

/** A node, or several that stand for one: those of one level and category. */
export interface PictureBox {
  readonly label: string;
  readonly level: number;
  readonly count: number;
  /** The names of its nodes, or of the first few. */
  readonly nodes: readonly string[];
  /** How many of its nodes are in each state, by DAGMan's names without `STATUS_`, in lower case. */
  readonly states: Readonly<Record<string, number>>;
}

/** What is drawn of a DAG: boxes, and lines between their places in `boxes`. */
export interface DagPicture {
  readonly boxes: readonly PictureBox[];
  readonly lines: readonly { readonly from: number; readonly to: number; readonly count: number }[];
  /** Whether a box can stand for several nodes. */
  readonly grouped: boolean;
  /** How many nodes the DAG has. */
  readonly size: number;
  /** How many neighbours were left out, because there are too many to draw. */
  readonly left: number;
}

const MOST_NAMED = 50;
/** Neighbours drawn node by node. */
const MOST_AROUND = 200;

/** Node by node if there are few, folded by level and category if there are many. */
export function pictureOfDag(replayed: ReplayedDag, { around, steps = 1 }: PictureWish = {}): DagPicture {
  const { dag } = replayed;
  const now = replayed.status();
  if (around !== undefined) return neighbourhood(dag, now, around, steps);
  const { boxes, lines, grouped } = pictureOf(dag);
  return {
    boxes: boxes.map(({ label, level, nodes }) => boxOf(dag, now, label, level, nodes)),
    lines,
    grouped,
    size: dag.size,
    left: 0,
  };
}

function neighbourhood(dag: DagGraph, now: Uint8Array, name: string, steps: number): DagPicture {
  const start = dag.byName.get(name);
  const { childStart, childList, parentStart, parentList } = dag.edges;
  const levelOf = new Map<number, number>(start === undefined ? [] : [[start, 0]]);
  let left = 0;
  let edge = [...levelOf.keys()];
  for (let step = 0; step < steps; step++) {
    const next: number[] = [];
    const see = (node: number, level: number): void => {
      if (levelOf.has(node)) return;
      if (levelOf.size >= MOST_AROUND) {
        left += 1;
        return;
      }
      levelOf.set(node, level);
      next.push(node);
    };
    for (const node of edge) {
      const level = levelOf.get(node) ?? 0;
      for (const parent of parentList.subarray(parentStart[node], parentStart[node + 1])) see(parent, level - 1);
      for (const child of childList.subarray(childStart[node], childStart[node + 1])) see(child, level + 1);
    }
    edge = next;
  }
  const nodes = [...levelOf];
  const lowest = Math.min(0, ...levelOf.values());
  const placeOf = new Map(nodes.map(([node], at) => [node, at]));
  const lines = nodes.flatMap(([node], from) =>
    [...childList.subarray(childStart[node], childStart[node + 1])].flatMap((child) => {
      const to = placeOf.get(child);
      return to === undefined ? [] : [{ from, to, count: 1 }];
    }),
  );
  return {
    boxes: nodes.map(([node, level]) => boxOf(dag, now, nameOf(dag, node), level - lowest, [node])),
    lines,
    grouped: false,
    size: dag.size,
    left,
  };
}

function boxOf(dag: DagGraph, now: Uint8Array, label: string, level: number, nodes: readonly number[]): PictureBox {
  const states: Record<string, number> = {};
  for (const node of nodes) {
    const name = STATUS_NAMES[stateOf(dag, now, node)].slice('STATUS_'.length).toLowerCase();
    states[name] = (states[name] ?? 0) + 1;
  }
  const named = nodes.slice(0, MOST_NAMED).map((node) => nameOf(dag, node));
  return { label, level, count: nodes.length, nodes: named, states };
}

/** DAGMan also calls a node ready that waits for its parents. */
function stateOf(dag: DagGraph, now: Uint8Array, node: number): Status {
  const status = now[node] as Status;
  const { parentStart, parentList } = dag.edges;
  const parents = parentList.subarray(parentStart[node], parentStart[node + 1]);
  return status === STATUS.ready && parents.some((parent) => now[parent] !== STATUS.done) ? STATUS.notReady : status;
}
