import type { AttemptSpec, Capacity, Refusal, SiteCause } from '../site/contract.ts';

/**
 * One batch system. Its shell half only moves bytes; this half decides what they mean, and totally: an unknown word is
 * `unclear`, never an end. A new batch system is a file like slurm.ts, its shell half, and a line in registry.ts.
 *
 * The shell half is sourced by jobmanager.sh as `backend.sh` and defines
 * - QUEUE_HEADING: the first word of a good answer of backend_queue, whose first line is a heading;
 * - backend_start, backend_version (a line), wait_for_event (returns when events/ may be worth a look);
 * - backend_submit_all WORDS (`KEY:N`; calls submit_one for each), backend_submit KEY N WORDS… (sets ID; if the command
 *   failed, status ≠ 0 and words on standard error; TAG must go where backend_queue finds it);
 * - if it has arrays (with PARALLEL_SUBMITS): backend_submit_array TAG COUNT WORDS…, like backend_submit, whose
 *   elements, indexed from 1, run the wrapper with TAG and their index; find_array_limit (sets ARRAY_LIMIT, the most
 *   elements in one array); backend_elements ANSWER (if ANSWER is an array's: sets BEFORE and AFTER, the text around an
 *   element's index in what `idOf` reads its id from, and FIRST, the first index there). An element's lines have
 *   TAG[INDEX] in place of a tag, and may have TAG[LIST] for several elements; `elements` turns these into the
 *   elements' own tags;
 * - backend_queue: the heading, then a line `TAG ID REST` for each waiting, running or just ended job of this user;
 * - backend_account IDS: raw lines about ended jobs;
 * - backend_cancel TERM|KILL|FORCE TAGS: ends them, matching by tag. FORCE is for jobs told to end long ago, which the
 *   batch system should forget where it can;
 * - backend_capacity, if the site can say how many cores it has and how many are free: one line;
 * - backend_accounting, if some sites have no accounting, and backend_has QUEUE: each describes in words what there is,
 *   or prints nothing; backend_queues: the names of all queues, a line each.
 */
export interface Backend {
  readonly name: string;
  /** Files next to this one; the first becomes `backend.sh`, the others keep their names. */
  readonly shell: readonly string[];
  readonly patience: Patience;
  /** Reads the line of `backend_capacity`; a backend without this cannot tell the site's cores. */
  capacityOf?(line: string): Capacity | undefined;
  /** The shell half has `backend_submit_array`. */
  readonly arrays: boolean;
  /** Its job script sets GRYPHUS_RESTARTED for the wrapper when it runs a requeued job again. */
  readonly runsAgain?: true;
  /** The shell half has `backend_account`. */
  readonly accounts: boolean;
  /** The options of the submit command for this attempt. */
  submitWords(spec: AttemptSpec): readonly string[];
  /** The id in the submit command's last line; if undefined, the queue is searched by tag. */
  idOf(answer: string): string | undefined;
  /** What a failed submit command means; `unclear` if it may have submitted the job anyway. */
  refusalOf(status: number, message: string): Refusal | 'unclear';
  queueEntry(rest: string): QueueEntry;
  /** Reads one line of the accounting; undefined if it is not about a job. */
  accountOf?(line: string): Account | undefined;
  /**
   * Shell that detects the batch system: calls `look NAME VERSION QUESTION…` (found.ts) if the machine has its
   * commands; QUESTION is a command that its controller answers. Without this, it is never detected.
   */
  readonly detect?: string;
  /**
   * Shell that becomes this command line on the machine of the running job with this id, beside the job. A batch system
   * without a command for it lacks this.
   */
  beside?(id: string, commandLine: string): string;
  /** What it means that a wrapper was told to end, if no batch system could have told it, nor did we. */
  readonly told?: Verdict;
  /** It may not say that it ended a job: a wrapper that was told to end, and not by us, was cancelled there. */
  readonly silent?: true;
  /** Its jobs have one machine each. */
  readonly oneHost?: true;
  /** A submit command that it has no portable option for; `instead`: an option that some sites have. */
  readonly lacks?: { readonly command: 'request_disk' | 'batch_queue'; readonly instead?: string };
}

/** Times in milliseconds. */
export interface Patience {
  /** Time between two looks at the queue when nothing happens, and the shortest one when something is in doubt. */
  readonly lookEvery: number;
  readonly lookAgain: number;
  /** How long a job must be absent from the queue, in two good answers, to be lost. */
  readonly lost: number;
  /** How long an exit record may take to arrive after the queue says that the job ended (NFS). */
  readonly lag: number;
  /** How long to wait for the verdict after an exit by a signal; the second while the queue still calls it running. */
  readonly verdict: number;
  readonly closing: number;
}

export type QueueEntry =
  | { readonly is: 'waiting' | 'suspended'; readonly message: string }
  /** `by`: what stopped the job after its start, if the site says. `never`: as requested, it can never start. */
  | { readonly is: 'held'; readonly message: string; readonly by?: SiteCause; readonly never?: true }
  /** `ending`: it is being ended, and by whom; `limit`: its time limit in seconds. */
  | { readonly is: 'running'; readonly host?: string; readonly ending?: Verdict; readonly limit?: number }
  | ({ readonly is: 'ended' } & Verdict)
  | { readonly is: 'unclear'; readonly message: string };

/** Who ended a job, according to the batch system. */
export interface Verdict {
  /** `itself`: the wrapper ended by itself, and its exit record says how. */
  readonly by: 'itself' | SiteCause;
  readonly message: string;
}

export interface Account extends Verdict {
  readonly id: string;
  /** The attempt that this job ran, if the accounting knows: batch systems reuse ids. */
  readonly key?: string;
}
