import { setMaxListeners } from 'node:events';
import { pause } from './patience.ts';

/** After so long without events it is quiet, and what only looks for lost news then looks so often. Milliseconds. */
const QUIET = { after: 15_000, every: 10_000 } as const;
/** Waits of at least twice such a time end at one of its multiples, so that one wake-up serves many; milliseconds. */
const TICKS_MS: readonly number[] = [5000, 1000];
/** A timer may end so much before its time, milliseconds. */
const EARLY_MS = 2;

/** The waits of the Scheduler's loops: longer while nothing happens, and ended by what does. */
export class Lull {
  #heardAt = performance.now();
  /** Aborted by the first event after a quiet time. */
  #stirred = freshStir();
  readonly #stop: AbortSignal;

  constructor(stop: AbortSignal) {
    this.#stop = stop;
    stop.addEventListener('abort', () => this.#stirred.abort(), { once: true });
  }

  /** There were events. */
  stir(): void {
    const was = this.#isQuiet;
    this.#heardAt = performance.now();
    if (!was || this.#stop.aborted) return;
    this.#stirred.abort();
    this.#stirred = freshStir();
  }

  /** `ms`, or longer while it is quiet. */
  unlessQuiet(ms: number): number {
    return this.#isQuiet ? Math.max(ms, QUIET.every) : ms;
  }

  /** Waits so many milliseconds, which may become fewer meanwhile. */
  async wait(everyMs: () => number): Promise<void> {
    const begun = performance.now();
    while (!this.#stop.aborted) {
      const ms = everyMs();
      const tick = TICKS_MS.find((one) => ms >= 2 * one) ?? 1;
      const left = Math.round((begun + ms) / tick) * tick - performance.now();
      if (left < EARLY_MS) return;
      await pause(left, this.#stirred.signal);
    }
  }

  get #isQuiet(): boolean {
    return performance.now() - this.#heardAt > QUIET.after;
  }
}

/** All loops wait for it. */
function freshStir(): AbortController {
  const stir = new AbortController();
  setMaxListeners(0, stir.signal);
  return stir;
}
