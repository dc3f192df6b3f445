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
/** Of a worker that rests and was heard, so many checks are left out. */
const LEFT_OUT = 5;
/**
 * How many pings a second the workers that run nothing send, all together, once they are more than send as many in the usual way; and
 * the longest rest of each between two, in seconds: firewalls forget connections that are quiet for some minutes.
 */
const PINGS = 50;
const LONGEST_REST = 120;

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
}

const FINE: Finding = { isSilent: false, isDead: false, isAsked: false };

/** How long nothing was heard of a worker: a node that loses power does not close its connections. */
export class WorkerSilence {
  /** When the last byte had arrived as of the last check, by the monotonic clock. */
  #heardAt: number;
  /** The number of checks since then without any. */
  #quiet = 0;
  #busy = false;
  #leaves = 0;
  /** What it was told to rest between pings while it runs nothing, in seconds. */
  rest: number | undefined;

  constructor(heardAt: number) {
    this.#heardAt = heardAt;
  }

  /** Whether to leave out this check: one costs little, but not one of each of ten thousand workers. */
  leavesOut(): boolean {
    if (this.#leaves === 0) return false;
    this.#leaves -= 1;
    return true;
  }

  /** A job was sent there. */
  starts(): void {
    this.#leaves = 0;
  }

  /** Every five seconds, unless it is left out; `heardAt`: when the last byte arrived. */
  check(heardAt: number, worker: Claimed | undefined): Finding {
    const busy = runsSomething(worker);
    // From the start of a job on it rests no more.
    const woke = busy && !this.#busy && this.rest !== undefined;
    this.#quiet = woke || heardAt > this.#heardAt ? 0 : this.#quiet + 1;
    this.#heardAt = heardAt;
    this.#busy = busy;
    const resting = busy || this.rest === undefined ? 0 : Math.ceil((this.rest - PING) / CHECK);
    if (this.#quiet === 0 && resting > LEFT_OUT) this.#leaves = LEFT_OUT;
    const late = this.#quiet - resting;
    if (late < QUIET.ask) return FINE;
    return { isSilent: late >= QUIET.silent, isDead: late >= QUIET.dead, isAsked: late >= QUIET.ask };
  }
}

function runsSomething(worker: Claimed | undefined): boolean {
  if (worker === undefined || worker.claims.size === 0) return false;
  for (const { key } of worker.claims.values()) if (key !== undefined) return true;
  return false;
}
