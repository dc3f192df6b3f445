import type { AttemptSpec, Capacity, Refusal, SiteCause } from '../site/contract.ts';

/**
 * One batch system. Its shell half only moves bytes; what they mean is decided here, totally: a word that nobody knows
 * is `unclear`, never an end. A new one is a file like slurm.ts, its shell half, and a line in registry.ts.
 *
 * The shell half is sourced by jobmanager.sh as `backend.sh` and defines
 * - QUEUE_HEADING: the first word of a good answer of backend_queue, whose first line is a heading;
 * - backend_start, backend_version (a line), wait_for_event (returns when it may be worth a look at events/);
 * - backend_submit_all WORDS (`KEY:N`; calls submit_one for each), backend_submit KEY N WORDS… (sets ID, status ≠ 0 with
 *   words on standard error where the command failed; TAG is to be put where backend_queue finds it);
 * - if it has arrays (with PARALLEL_SUBMITS): backend_submit_array TAG COUNT WORDS…, as backend_submit, whose elements, by
 *   index from 1, run the wrapper with TAG and their index; find_array_limit (sets ARRAY_LIMIT, the most elements of one);
 *   backend_elements ANSWER (where it is one: sets BEFORE and AFTER, what stands around an element's index in what `idOf`
 *   reads its id from, and FIRST, the first index there). An element's lines have TAG[INDEX] in place of a tag, wherever one stands; `elements` turns it into the element's own,
 *   and TAG[LIST] into all of the LIST's;
 * - backend_queue: the heading, then a line `TAG ID REST` for each job of this user, waiting, running or just ended;
 * - backend_account IDS: raw lines about ended jobs; backend_cancel TERM|KILL|FORCE TAGS: ends them, matching by tag;
 *   FORCE: what was told to end long ago, and which the batch system is to forget where it can;
 * - backend_capacity, if the site can say how many cores it has and how many are free: one line;
 * - backend_accounting, if there are sites without one, and backend_has QUEUE: what they are, in words, nothing where there
 *   is none.
 */
export interface Backend {
  readonly name: string;
  /** Beside this file; the first becomes `backend.sh`, the others keep their names. */
  readonly shell: readonly string[];
  readonly patience: Patience;
  /** What the line of `backend_capacity` says; a backend without one cannot tell the site's cores. */
  capacityOf?(line: string): Capacity | undefined;
  /** Has `backend_submit_array`. */
  readonly arrays: boolean;
  /** Has `backend_account`. */
  readonly accounts: boolean;
  /** The words of the submit command for this attempt. */
  submitWords(spec: AttemptSpec): readonly string[];
  /** The id in the submit command's last line; undefined where it is none (then the queue is searched by tag). */
  idOf(answer: string): string | undefined;
  /** What a failed submit command means; `unclear` where it may have submitted all the same. */
  refusalOf(status: number, message: string): Refusal | 'unclear';
  queueEntry(rest: string): QueueEntry;
  /** What one line of the accounting says, undefined where it is none. */
  accountOf?(line: string): Account | undefined;
  /**
   * Shell that finds out whether a machine has its commands: calls `look NAME VERSION QUESTION…` if so (found.ts), where QUESTION
   * is a command that its controller answers. None: it is never detected.
   */
  readonly detect?: string;
  /** A submit command for which it has no option that is good at every site; `instead`: one that some sites have. */
  readonly lacks?: { readonly command: 'request_disk' | 'batch_queue'; readonly instead?: string };
}

/** Milliseconds. */
export interface Patience {
  /** Between two looks at the queue when nothing happens, and at least, when something is in doubt. */
  readonly lookEvery: number;
  readonly lookAgain: number;
  /** Absent from the queue for so long, in two good answers: lost. */
  readonly lost: number;
  /** For an exit record to arrive after the queue says that the job ended (NFS). */
  readonly lag: number;
  /** For the verdict to follow an exit by a signal, and as long as the queue calls it running: there it is not over yet. */
  readonly verdict: number;
  readonly closing: number;
}

export type QueueEntry =
  | { readonly is: 'waiting' | 'suspended'; readonly message: string }
  /** `by`: what stopped it, where it had started and the site says so. `never`: as it is asked for, it cannot be started. */
  | { readonly is: 'held'; readonly message: string; readonly by?: SiteCause; readonly never?: true }
  /** `ending`: it is being ended, and by whom; `limit`: seconds that it may run. */
  | { readonly is: 'running'; readonly host?: string; readonly ending?: Verdict; readonly limit?: number }
  | ({ readonly is: 'ended' } & Verdict)
  | { readonly is: 'unclear'; readonly message: string };

/** Who ended a job, by the batch system's word. */
export interface Verdict {
  /** `itself`: the wrapper ended, and its exit record says how. */
  readonly by: 'itself' | SiteCause;
  readonly message: string;
}

export interface Account extends Verdict {
  readonly id: string;
  /** The attempt whose job this was, where the accounting knows; ids are given again. */
  readonly key?: string;
}
