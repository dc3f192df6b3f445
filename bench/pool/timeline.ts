interface Planned {
  readonly at: number;
  readonly id: number;
  readonly call: () => void;
}

/** What is planned to happen, in the order of simulated time. Seconds. */
export class Timeline {
  now = 0;
  readonly #heap: Planned[] = [];
  readonly #cancelled = new Set<number>();
  #last = 0;

  add(inSeconds: number, call: () => void): number {
    const planned = { at: this.now + inSeconds, id: ++this.#last, call };
    let i = this.#heap.push(planned) - 1;
    while (i > 0) {
      const up = (i - 1) >> 1;
      const above = this.#heap[up];
      if (!above || !isBefore(planned, above)) break;
      this.#heap[i] = above;
      i = up;
    }
    this.#heap[i] = planned;
    return planned.id;
  }

  cancel(id: number): void {
    this.#cancelled.add(id);
  }

  /** Advances to the next planned call, and makes it. */
  step(): void {
    const next = this.#take();
    if (!next) throw new Error('nothing is planned');
    this.now = next.at;
    if (!this.#cancelled.delete(next.id)) next.call();
  }

  #take(): Planned | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (!first || !last || heap.length === 0) return first;
    let i = 0;
    for (;;) {
      let down = 2 * i + 1;
      if (down >= heap.length) break;
      if (isBefore(heap[down + 1], heap[down])) down += 1;
      const below = heap[down];
      if (!below || !isBefore(below, last)) break;
      heap[i] = below;
      i = down;
    }
    heap[i] = last;
    return first;
  }
}

function isBefore(a: Planned | undefined, b: Planned | undefined): boolean {
  return a !== undefined && (b === undefined || a.at < b.at || (a.at === b.at && a.id < b.id));
}
