import type { AttrTexts } from '../job/attrs.ts';
import type { Ending, InputFile } from '../site/contract.ts';
import type { RunSpec, Size } from './wire/wire.ts';

/** One task: the arguments that are added to the program's own. */
export interface PoolTask<T> {
  readonly args: readonly string[];
  /** Returned with the result. */
  readonly of: T;
  /** Its inputs in addition to the common ones. */
  readonly inputs: readonly InputFile[];
  /** Names of files, in its directory and below, that are brought home. */
  readonly outputs: readonly string[];
  /** Why it cannot be run at all. */
  readonly refused?: string;
}

/** How one task of a map ended; `of` is what the task was made of. */
export interface MapResult<T> {
  readonly of: T;
  /** Counts from 0 in the order of the input. */
  readonly index: number;
  readonly ending: Ending;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** How often it was started. */
  readonly tries: number;
  /** Why it failed although its program succeeded: an output that it did not create, or that cannot be written here. */
  readonly problem?: string;
}

/** A task that runs again. */
export type MapAgain<T> = Pick<MapResult<T>, 'of' | 'index'>;

export interface MapOptions<T> {
  /** The central manager's socket for clients, and its journal. */
  readonly socket: string;
  readonly journal: string;
  /** Told, once, of tasks that run again although they may have run: the pool has lost its journal. 500 at most. */
  readonly onAgain: (tasks: readonly MapAgain<T>[]) => void;
  readonly owner: string;
  /** The directory for outputs, and the one they are in during the transfer. */
  readonly cwd: string;
  readonly spoolDir: string;
  /** What all tasks have in common; their arguments are appended to its own. */
  readonly spec: RunSpec;
  readonly ad: AttrTexts;
  readonly size: Size;
  /** How often a failing task is restarted. */
  readonly retries: number;
  /** How many tasks the central manager may have at once. */
  readonly window?: number;
  readonly signal?: AbortSignal;
  /** Once aborted, no further task is started; those that run are waited for. */
  readonly enough?: AbortSignal;
}
