import { loadavg } from 'node:os';

/** The kernel damps the load average of one minute by this time, in seconds. */
const MINUTE = 60;

/** What of the machine's load is our own jobs': the processor time that they use, damped as the kernel damps the load. */
export class OwnLoad {
  #value = 0;
  #at: number | undefined;
  readonly #seconds = new Map<string, number>();

  /** `used`: processor seconds that each run has used so far. `at`: seconds by a clock that cannot be set. */
  note(used: ReadonlyMap<string, number>, at: number): number {
    let spent = 0;
    for (const [key, seconds] of used)
      spent += Math.max(0, seconds - (this.#seconds.get(key) ?? (this.#at === undefined ? seconds : 0)));
    this.#seconds.clear();
    for (const [key, seconds] of used) this.#seconds.set(key, seconds);
    const passed = at - (this.#at ?? at);
    this.#at = at;
    if (passed <= 0) return this.#value;
    const kept = Math.exp(-passed / MINUTE);
    this.#value = this.#value * kept + (spent / passed) * (1 - kept);
    return this.#value;
  }
}

/** Load averages of one minute: all of the machine's, and our own jobs' part. */
export interface MachineLoad {
  readonly total: number;
  readonly own: number;
}

export function loadNow(own: number): MachineLoad {
  const [total = 0] = loadavg();
  // Each is damped on its own, so their difference may be a little below 0.
  return { total, own: Math.min(own, total) };
}
