import { loadavg } from 'node:os';

/** The kernel damps the load average of one minute by this time, in seconds. */
const MINUTE = 60;

/** What is known of a job's use of the processors. */
export interface JobLoad {
  /** Processor seconds that it has used so far. */
  readonly seconds: number;
  /** Its processes and threads that ran, or waited for a processor or a disk, at the last look. */
  readonly tasks: number;
}

/**
 * What of the machine's load is our own jobs', damped as the kernel damps the load. Processor time is exact, but where
 * jobs have more tasks than processors, or share them with others, most of their load is waiting; so their tasks are
 * counted as the kernel counts them, now and then, and the larger of the two is taken.
 */
export class OwnLoad {
  #spent = 0;
  #tasks = 0;
  #at: number | undefined;
  readonly #seconds = new Map<string, number>();

  /** `at`: seconds by a clock that cannot be set. */
  note(used: ReadonlyMap<string, JobLoad>, at: number): number {
    let spent = 0;
    let tasks = 0;
    for (const [key, one] of used) {
      spent += Math.max(0, one.seconds - (this.#seconds.get(key) ?? (this.#at === undefined ? one.seconds : 0)));
      tasks += one.tasks;
    }
    this.#seconds.clear();
    for (const [key, { seconds }] of used) this.#seconds.set(key, seconds);
    const passed = at - (this.#at ?? at);
    this.#at = at;
    if (passed > 0) {
      const kept = Math.exp(-passed / MINUTE);
      this.#spent = this.#spent * kept + (spent / passed) * (1 - kept);
      this.#tasks = this.#tasks * kept + tasks * (1 - kept);
    }
    return Math.max(this.#spent, this.#tasks);
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
