import type { Edges } from './graph.ts';

/** Dependencies as declared, before they are packed into rows. */
export class EdgeList {
  private readonly from: number[] = [];
  private readonly to: number[] = [];
  private readonly weak: number[] = [];
  private anyWeak = false;

  add(parent: number, child: number, weak: boolean): void {
    this.from.push(parent);
    this.to.push(child);
    this.weak.push(weak ? 1 : 0);
    if (weak) this.anyWeak = true;
  }

  /** Packs the dependencies into rows, each once; one that is declared both weak and strong is strong. */
  rows(nodes: number): Edges {
    const { from, to } = this;
    const start = rowStarts(from, nodes);
    const byParent = new Int32Array(from.length);
    const fill = start.slice();
    for (let e = 0; e < from.length; e++) {
      const parent = from[e] ?? 0;
      const at = fill[parent] ?? 0;
      byParent[at] = e;
      fill[parent] = at + 1;
    }
    const keep = this.distinct(byParent, nodes);
    const childStart = new Int32Array(nodes + 1);
    const count = keep.reduce((sum, kept) => sum + kept, 0);
    const childList = new Int32Array(count);
    const childWeak = this.anyWeak ? new Uint8Array(count) : undefined;
    let at = 0;
    for (let node = 0; node < nodes; node++) {
      childStart[node] = at;
      for (let i = start[node] ?? 0; i < (start[node + 1] ?? 0); i++) {
        const e = byParent[i] ?? 0;
        if (keep[e] !== 1) continue;
        childList[at] = to[e] ?? 0;
        if (childWeak !== undefined) childWeak[at] = this.weak[e] ?? 0;
        at++;
      }
    }
    childStart[nodes] = at;
    return { count, childStart, childList, childWeak, ...this.parents(keep, count, nodes) };
  }

  /** Marks the first of equal edges, which becomes strong if any of them is. */
  private distinct(byParent: Int32Array, nodes: number): Uint8Array {
    const keep = new Uint8Array(this.from.length);
    const seenFor = new Int32Array(nodes).fill(-1);
    const firstEdge = new Int32Array(nodes);
    for (const e of byParent) {
      const child = this.to[e] ?? 0;
      const parent = this.from[e] ?? 0;
      if (seenFor[child] === parent) {
        if (this.weak[e] === 0) this.weak[firstEdge[child] ?? 0] = 0;
        continue;
      }
      seenFor[child] = parent;
      firstEdge[child] = e;
      keep[e] = 1;
    }
    return keep;
  }

  private parents(
    keep: Uint8Array,
    count: number,
    nodes: number,
  ): { readonly parentStart: Int32Array; readonly parentList: Int32Array } {
    const parentStart = new Int32Array(nodes + 1);
    for (let e = 0; e < this.to.length; e++) {
      if (keep[e] === 1) parentStart[(this.to[e] ?? 0) + 1] = (parentStart[(this.to[e] ?? 0) + 1] ?? 0) + 1;
    }
    for (let node = 0; node < nodes; node++) {
      parentStart[node + 1] = (parentStart[node + 1] ?? 0) + (parentStart[node] ?? 0);
    }
    const parentList = new Int32Array(count);
    const fill = parentStart.slice();
    for (let e = 0; e < this.to.length; e++) {
      if (keep[e] !== 1) continue;
      const child = this.to[e] ?? 0;
      const at = fill[child] ?? 0;
      parentList[at] = this.from[e] ?? 0;
      fill[child] = at + 1;
    }
    return { parentStart, parentList };
  }
}

function rowStarts(rows: readonly number[], count: number): Int32Array {
  const start = new Int32Array(count + 1);
  for (const row of rows) start[row + 1] = (start[row + 1] ?? 0) + 1;
  for (let i = 0; i < count; i++) start[i + 1] = (start[i + 1] ?? 0) + (start[i] ?? 0);
  return start;
}
