import type { AttemptKey } from '../../job/ids.ts';
import type { Attempt } from './attempts.ts';

export interface ThrottleRules {
  /** The most starts (JOB_START_COUNT) in each `delay` seconds (JOB_START_DELAY); 0 seconds: no limit. */
  readonly count: number;
  readonly delay: number;
  /** The most jobs whose input files are on their way (MAX_CONCURRENT_UPLOADS); 0: no limit. */
  readonly uploads: number;
}

/** Seconds. */
const PATIENCE = 600;

export const NO_THROTTLE: ThrottleRules = { count: 1, delay: 0, uploads: 0 };

/** How many jobs start at once, so that home can carry it. */
export class StartThrottle {
  readonly #now: () => number;
  /** Since when. */
  readonly #uploading = new Map<AttemptKey, number>();
  #since = Number.NEGATIVE_INFINITY;
  #started = 0;
  rules: ThrottleRules = NO_THROTTLE;

  /** `now`: monotonic seconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Seconds until it may start; 0: now. `undefined`: when the inputs of another have arrived. */
  wait(attempt: Attempt): number | undefined {
    const { count, delay, uploads } = this.rules;
    if (uploads > 0 && hasInputs(attempt) && this.#atOnce() >= uploads) return undefined;
    const left = this.#since + delay - this.#now();
    return delay > 0 && left > 0 && this.#started >= count ? left : 0;
  }

  /** Jobs whose inputs are on their way. Workers that are away for longer than PATIENCE hold up no others. */
  #atOnce(): number {
    const now = this.#now();
    for (const [key, since] of this.#uploading) {
      if (now - since < PATIENCE) break;
      this.#uploading.delete(key);
    }
    return this.#uploading.size;
  }

  /** It was granted. */
  starts(attempt: Attempt): void {
    const now = this.#now();
    if (hasInputs(attempt)) this.#uploading.set(attempt.key, now);
    if (now >= this.#since + this.rules.delay) {
      this.#since = now;
      this.#started = 0;
    }
    this.#started += 1;
  }

  /** Its inputs are there, or are not needed any more; true if that lets another start. */
  arrived(key: AttemptKey): boolean {
    return this.#uploading.delete(key) && this.rules.uploads > 0;
  }
}

function hasInputs({ request: { spec } }: Attempt): boolean {
  return spec.inputs !== undefined && spec.inputs.length > 0;
}
