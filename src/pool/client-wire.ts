/*
 * What the agent's own processes (GridManagers, maps, commands) and the desk say to each other, over the desk's socket
 * in the agent's 0700 directory. Questions carry an id that their answer repeats; reports and chunks come unasked.
 */
import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { Capacity, Ending, FetchOutcome, FetchRequest, Outcome, Report } from '../site/contract.ts';
import type { AttemptRequest } from './attempts.ts';
import type { Standing } from './priorities.ts';
import type { Terminal } from './shell-text.ts';
import type { RunUsage } from './usage.ts';
import type { FromDesk, FromWorker, RunSpec, Size } from './wire.ts';

/** A running attempt; without `usage` where its worker does not answer now. */
export interface RunningNow {
  readonly job: string;
  readonly is: 'running' | 'suspended';
  readonly host?: string;
  /** Unix seconds. */
  readonly startedAt?: number;
  readonly usage?: RunUsage;
}

/** An owner of jobs, as the negotiator sees them. */
export interface PoolOwner extends Standing {
  /** Jobs and tasks that wait for a slot. */
  readonly waiting: number;
}

/** What keeps a job waiting, a line for each reason; `wants`: what it asks for, where no worker that is there would ever do. */
export interface WaitInPool {
  readonly lines: readonly string[];
  readonly wants?: Pick<Size, 'cpus' | 'memoryMb'>;
}

/** Why a job waits in a pool where nobody is. */
export const NO_WORKERS = 'The pool has no workers now.';

export type FromClient =
  /** `client`: a GridManager's identity, or a map's session. From now on its attempts' reports come here. */
  | { readonly t: 'open'; readonly client: string; readonly map: boolean }
  | { readonly t: 'prepare'; readonly id: number; readonly requests: readonly AttemptRequest[] }
  | { readonly t: 'commit'; readonly id: number; readonly keys: readonly AttemptKey[] }
  /** Answered when none can run any more, or where that cannot be said yet with a refusal 'later'. */
  | {
      readonly t: 'cancel';
      readonly id: number;
      readonly keys: readonly AttemptKey[];
      readonly how: 'remove' | 'if-not-started';
    }
  /** Reports of all of the client's attempts, in the answer. */
  | { readonly t: 'all'; readonly id: number }
  | { readonly t: 'follow'; readonly key: AttemptKey; readonly stdout: number; readonly stderr: number }
  | { readonly t: 'fetch'; readonly id: number; readonly request: FetchRequest }
  | { readonly t: 'forget'; readonly id: number; readonly keys: readonly AttemptKey[] }
  | { readonly t: 'capacity'; readonly id: number }
  /** A map's tasks. */
  | {
      readonly t: 'base';
      readonly base: string;
      readonly spec: RunSpec;
      readonly ad: AttrTexts;
      readonly size: Size;
      readonly owner: string;
      readonly lease: number;
    }
  | {
      readonly t: 'tasks';
      readonly base: string;
      /** Each with the words that follow the base's own arguments. */
      readonly tasks: readonly (readonly [AttemptKey, readonly string[]])[];
    }
  /** The pool's slots, as ads. */
  | { readonly t: 'slots'; readonly id: number }
  /** Who uses the pool, and who waits for it. */
  | { readonly t: 'owners'; readonly id: number }
  /** What keeps an attempt waiting. */
  | { readonly t: 'why'; readonly id: number; readonly job: string }
  /** A shell beside a job that runs; `shell`: a name that only whoever opens it knows. */
  | {
      readonly t: 'shell';
      readonly shell: string;
      /** As in `steer`. */
      readonly job: string;
      readonly command?: string;
      readonly tty?: Terminal;
    }
  | Extract<FromDesk, { readonly t: 'shell-in' | 'shell-size' | 'shell-close' }>
  /** What runs now, of all clients, and what it takes. */
  | { readonly t: 'top'; readonly id: number }
  /** `jobs`: keys without the attempt, `<agent>.<cluster>.<proc>`. */
  | {
      readonly t: 'steer';
      readonly id: number;
      readonly jobs: readonly string[];
      readonly how: 'vacate' | 'suspend' | 'continue';
    }
  /** Whoever watches a worker knows that it is no more. `token`: that let it in. */
  | { readonly t: 'buried'; readonly id: number; readonly token: string; readonly words: string }
  /** Workers let in by these tokens take no more jobs, and end. */
  | { readonly t: 'drain'; readonly id: number; readonly tokens: readonly string[]; readonly now: boolean };

export type ToClient =
  | { readonly t: 'done'; readonly id: number; readonly outcomes: readonly (readonly [AttemptKey, Outcome])[] }
  | { readonly t: 'reports'; readonly id?: number; readonly reports: readonly Report[] }
  | { readonly t: 'chunk'; readonly key: AttemptKey; readonly stream: 'stdout' | 'stderr'; readonly offset: number }
  | { readonly t: 'fetched'; readonly id: number; readonly outcome: FetchOutcome }
  | { readonly t: 'capacity'; readonly id: number; readonly capacity: Capacity }
  | { readonly t: 'slots'; readonly id: number; readonly ads: readonly AttrTexts[] }
  | { readonly t: 'owners'; readonly id: number; readonly owners: readonly PoolOwner[] }
  | ({ readonly t: 'why'; readonly id: number } & WaitInPool)
  | { readonly t: 'steered'; readonly id: number; readonly jobs: readonly string[] }
  /** A map's task has ended. The bytes are its streams, stdout's first; without `inline` they are to be fetched. */
  | {
      readonly t: 'result';
      readonly key: AttemptKey;
      readonly ending: Ending;
      readonly inline?: { readonly stdout: number; readonly stderr: number };
    }
  | Extract<FromWorker, { readonly t: 'shell-out' | 'shell-over' }>
  | { readonly t: 'tops'; readonly id: number; readonly runs: readonly RunningNow[] }
  | { readonly t: 'failed'; readonly id: number; readonly words: string };
