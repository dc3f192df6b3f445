/** A GridManager's sign of life, as it was seen now: it differs from the one before while the process is well. */
export interface Beat {
  readonly identity: string;
  readonly pid: number;
  readonly beat: string;
}

interface Seen extends Beat {
  /** Monotonic milliseconds. */
  readonly at: number;
  readonly looks: number;
}

/** A Scheduler that was stopped itself, or a machine that slept, has not looked: so many looks it must have been. */
const LEAST_LOOKS = 8;

/**
 * Notices which GridManagers hang: their process is there and has given no sign of life for the whole patience. Nothing of it is
 * read off a clock that can be set. Pure but for the clock that it is given.
 */
export class Heartbeats {
  readonly #now: () => number;
  #seen = new Map<string, Seen>();

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Takes in what was seen of all that run; those that hang. */
  look(beats: readonly Beat[], patienceMs: number): readonly Beat[] {
    const now = this.#now();
    const seen = new Map<string, Seen>();
    for (const one of beats) {
      const before = this.#seen.get(one.identity);
      const same = before?.pid === one.pid && before.beat === one.beat;
      seen.set(one.identity, same ? { ...before, looks: before.looks + 1 } : { ...one, at: now, looks: 0 });
    }
    this.#seen = seen;
    return [...seen.values()].filter(({ at, looks }) => looks >= LEAST_LOOKS && now - at >= patienceMs);
  }
}
