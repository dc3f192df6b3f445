/** A GridManager's heartbeat as seen now; while the process is well, `beat` changes between looks. */
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

/**
 * A minimum number of looks: after the Scheduler was stopped or the machine slept, elapsed time alone proves nothing.
 */
const LEAST_LOOKS = 8;

/**
 * Detects GridManagers that hang: the process exists, but its heartbeat has not changed for the whole timeout. Depends
 * on no clock that can be set. Pure except for the clock it is given.
 */
export class Heartbeats {
  readonly #now: () => number;
  #seen = new Map<string, Seen>();

  /** `now`: monotonic milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Records the heartbeats of all running GridManagers. Returns those that hang. */
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
