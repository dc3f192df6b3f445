/**
 * Nodes that may be submitted, highest priority first. Among equals, those put at the front come first, the latest put
 * leading; the others follow in the order they were appended. A binary heap: O(log n) per push and pop.
 */
export class ReadyQueue {
  private readonly priority: Int32Array;
  private readonly heap: number[] = [];
  private readonly rank: number[] = [];
  private generation = 0;

  constructor(priority: Int32Array) {
    this.priority = priority;
  }

  get size(): number {
    return this.heap.length;
  }

  append(node: number): void {
    this.push(node, -++this.generation);
  }

  prepend(node: number): void {
    this.push(node, ++this.generation);
  }

  pop(): number | undefined {
    const top = this.heap[0];
    const last = this.heap.pop();
    const lastRank = this.rank.pop();
    if (top === undefined || last === undefined || lastRank === undefined) return undefined;
    if (this.heap.length > 0) this.sink(last, lastRank);
    return top;
  }

  /** Removes and returns all nodes, in no particular order. */
  drain(): number[] {
    this.rank.length = 0;
    return this.heap.splice(0);
  }

  private push(node: number, rank: number): void {
    let at = this.heap.length;
    this.heap.push(node);
    this.rank.push(rank);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.before(node, rank, this.heap[parent] ?? 0, this.rank[parent] ?? 0)) break;
      this.put(at, this.heap[parent] ?? 0, this.rank[parent] ?? 0);
      at = parent;
    }
    this.put(at, node, rank);
  }

  private sink(node: number, rank: number): void {
    const { heap } = this;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      const right = child + 1;
      if (
        right < heap.length &&
        this.before(heap[right] ?? 0, this.rank[right] ?? 0, heap[child] ?? 0, this.rank[child] ?? 0)
      ) {
        child = right;
      }
      if (!this.before(heap[child] ?? 0, this.rank[child] ?? 0, node, rank)) break;
      this.put(at, heap[child] ?? 0, this.rank[child] ?? 0);
      at = child;
    }
    this.put(at, node, rank);
  }

  private put(at: number, node: number, rank: number): void {
    this.heap[at] = node;
    this.rank[at] = rank;
  }

  private before(a: number, rankA: number, b: number, rankB: number): boolean {
    const pa = this.priority[a] ?? 0;
    const pb = this.priority[b] ?? 0;
    return pa === pb ? rankA > rankB : pa > pb;
  }
}
