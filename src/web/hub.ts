import type { EventWithCursor, Gryphus } from '../index.ts';

/** Between two bundles of events, and how long the first events of a change wait for its others; milliseconds. */
const BETWEEN_MS = 100;
const GATHER_MS = 10;
/** Events kept for pages that were away for a while. */
const KEPT = 5000;

export type Listener = (events: readonly EventWithCursor[]) => void;

/** One subscription of the queue's events for all pages, in bundles. */
export class Hub {
  readonly #gryphus: Gryphus;
  readonly #listeners = new Set<Listener>();
  readonly #stop = new AbortController();
  #kept: EventWithCursor[] = [];
  #held: EventWithCursor[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sent = 0;

  constructor(gryphus: Gryphus) {
    this.#gryphus = gryphus;
  }

  /** Follows the queue until `close()`; rejects if it can be read no longer. */
  async run(): Promise<void> {
    for await (const event of this.#gryphus.events({ signal: this.#stop.signal })) {
      this.#held.push(event);
      this.#timer ??= setTimeout(() => this.#flush(), Math.max(GATHER_MS, this.#sent + BETWEEN_MS - Date.now()));
    }
  }

  close(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
  }

  /** Returns a function that ends it. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The latest events, oldest first. */
  get latest(): readonly EventWithCursor[] {
    return this.#kept;
  }

  /** The events after this cursor; `undefined` if it is none of those kept. */
  after(cursor: string): readonly EventWithCursor[] | undefined {
    const at = this.#kept.findLastIndex((event) => event.cursor === cursor);
    return at < 0 ? undefined : this.#kept.slice(at + 1);
  }

  #flush(): void {
    this.#timer = undefined;
    this.#sent = Date.now();
    const events = this.#held;
    this.#held = [];
    this.#kept = [...this.#kept, ...events].slice(-KEPT);
    for (const listener of this.#listeners) listener(events);
  }
}
