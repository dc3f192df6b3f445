import type { HeldClaim } from './collector.ts';
import type { IssuedToken } from '../wire/tokens.ts';

/** Seconds between a worker's pings. */
const PING = 10;
/** The same for this machine's worker, which is monitored. */
const LOCAL_PING = 4;
/** Seconds between checks. */
const CHECK = 5;
/**
 * Numbers of checks in a row without a single byte received, after which the worker is sent a pong, gets no new
 * attempts, or is considered dead. Checks are counted rather than time, since nothing could arrive while this process
 * was stopped.
 */
const QUIET = { ask: 3, silent: 4, dead: 12 } as const;
/**
 * How many pings a second the workers that run nothing send, all together, once they are more than send as many in the usual way; and
 * the longest rest of each between two, in seconds.
 */
const PINGS = 50;
const LONGEST_REST = 300;

export function pingOf({ local }: Pick<IssuedToken, 'local'>): number {
  return local ? LOCAL_PING : PING;
}

/** Seconds that one of so many workers rests between pings while it runs nothing; `undefined`: it pings as the welcome said. */
export function restOf({ local }: Pick<IssuedToken, 'local'>, workers: number): number | undefined {
  const share = Math.min(LONGEST_REST, workers / PINGS);
  return local || share <= PING ? undefined : share;
}

interface Claimed {
  readonly claims: ReadonlyMap<string, Pick<HeldClaim, 'key'>>;
}

export interface Finding {
  /** It gets no new attempts. */
  readonly isSilent: boolean;
  readonly isDead: boolean;
  /** It should be told that we are here. */
  readonly isAsked: boolean;
  /** After how many checks it must be checked again, unless it starts something; until then nothing can be found. */
  readonly again: number;
}

/** What is to be checked in which of the coming checks: one costs little, but not one of each of ten thousand workers. */
export class Checks<T> {
  readonly #at = new Map<T, number>();
  readonly #due = new Map<number, Set<T>>();
  /** The number of the last check. */
  last = 0;

  /** In the check after so many others, and in no other one. */
  plan(one: T, again: number): void {
    this.drop(one);
    const at = this.last + again;
    this.#at.set(one, at);
    const due = this.#due.get(at);
    if (due) due.add(one);
    else this.#due.set(at, new Set([one]));
  }

  drop(one: T): void {
    const at = this.#at.get(one);
    if (at === undefined) return;
    this.#at.delete(one);
    this.#due.get(at)?.delete(one);
  }

  /** What this check, the next one, is for. */
  next(): readonly T[] {
    this.last += 1;
    const due = [...(this.#due.get(this.last) ?? [])];
    this.#due.delete(this.last);
    for (const one of due) this.#at.delete(one);
    return due;
  }
}

/** How long nothing was heard of a worker: a node that loses power does not close its connections. */
export class WorkerSilence {
  /** When the last byte had arrived as of the last check, by the monotonic clock. */
  #heardAt: number;
  /** The number of the last check, and of checks since then without any. */
  #checked: number;
  #quiet = 0;
  #busy = false;
  /** What it was told to rest between pings while it runs nothing, in seconds. */
  rest: number | undefined;

  /** `check`: the number of the last check when it was heard. */
  constructor(heardAt: number, check = 0) {
    this.#heardAt = heardAt;
    this.#checked = check;
  }

  /** Check number `check`; `heardAt`: when the last byte arrived, by the same monotonic clock as `now`. */
  check(heardAt: number, worker: Claimed | undefined, check: number, now: number): Finding {
    const busy = runsSomething(worker);
    // From the start of a job on it rests no more.
    const woke = busy && !this.#busy && this.rest !== undefined;
    const checks = check - this.#checked;
    if (woke) this.#quiet = 0;
    else if (heardAt > this.#heardAt)
      // Of the checks that were left out, those after the byte.
      this.#quiet = Math.min(checks - 1, Math.floor((now - heardAt) / (1000 * CHECK)));
    else this.#quiet += checks;
    this.#heardAt = heardAt;
    this.#checked = check;
    this.#busy = busy;
    const resting = busy || this.rest === undefined ? 0 : Math.ceil((this.rest - PING) / CHECK);
    const late = this.#quiet - resting;
    return {
      isSilent: late >= QUIET.silent,
      isDead: late >= QUIET.dead,
      isAsked: late >= QUIET.ask,
      again: Math.max(1, QUIET.ask - late),
    };
  }
}

function runsSomething(worker: Claimed | undefined): boolean {
  if (worker === undefined || worker.claims.size === 0) return false;
  for (const { key } of worker.claims.values()) if (key !== undefined) return true;
  return false;
}
