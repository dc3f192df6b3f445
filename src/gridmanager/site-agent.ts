import { asError, type GryphusError } from '../errors.ts';
import { Pauses } from '../util/pauses.ts';
import { isAboutTheSite } from '../job/about-the-site.ts';
import type { Again, SiteContext } from './context.ts';
import { checkCopy } from './older-copy.ts';
import { JobAnswers } from './chirp/answer-job.ts';
import type { DirectReads } from './remote-io/direct-reads.ts';
import type { Secrets } from './chirp/secrets.ts';
import { cancelRound } from './cancel-loop.ts';
import { asFault, isFault, type ReportFault } from '../job/faults.ts';
import type { ConnectionView } from '../queue/tables.ts';
import { SiteHealth } from './health.ts';
import { type WorkLoop, WORK_LOOPS } from '../job/work-loops.ts';
import { type RetryLimits, SubmitBudget } from './pacing.ts';
import { resultsRound } from './results-loop.ts';
import { submitRound, type SubmitState } from './submit-loop.ts';
import { type CapacityPollState, capacityPollRound } from './capacity-poll.ts';
import { freshWatch, type WatchState, watchRound } from './watch-loop.ts';
import { markSilent } from './silence.ts';

/** After this time without an answer the site's jobs become *unknown*, milliseconds. */
const SILENT_AFTER_MS = 30_000;

const DOING: Readonly<Record<WorkLoop, string>> = {
  submit: 'sending jobs to',
  watch: 'watching the jobs of',
  results: 'bringing home the results of',
  cancel: 'withdrawing jobs from',
  capacityPoll: 'asking what there is at',
};

export interface SiteAgentOptions {
  /** What running jobs may not reach at home. */
  readonly secrets: Secrets;
  /** The directories beside the submit directory that jobs with `want_remote_io` may reach (`pool.remote_io`). */
  readonly remoteIo: () => readonly string[];
  readonly directReads: DirectReads | undefined;
  /** Number of our jobs that have an attempt at the site, and of those that may be in its queue. */
  readonly placed: () => Promise<number>;
  readonly there: () => Promise<number>;
  /** Whether the broker is looking for sites now. */
  readonly capacityWanted: () => Promise<boolean>;
  readonly random: () => number;
  /** How long to leave alone a site that did not answer, by the current settings. */
  readonly retry: () => RetryLimits;
  /** Called once for each change of the connection's state. */
  readonly onHealth: (view: ConnectionView, site: string) => Promise<void>;
  /** Called when the state is the same but the message has changed. */
  readonly onMessage: (view: ConnectionView, site: string) => Promise<void>;
  /** Called for an unexpected error in a round. */
  readonly onFault: ReportFault;
}

/** Handles one site of one manager: runs the rounds of its work loops, and tracks the site's health. */
export class SiteAgent {
  readonly #ctx: SiteContext;
  readonly #options: SiteAgentOptions;
  readonly #health: SiteHealth;
  readonly #submit: SubmitState;
  #watch: WatchState;
  readonly #capacityPoll: CapacityPollState;
  readonly #pauses = new Pauses();
  #trouble = '';
  #silent = false;
  #meeting: Promise<void> | undefined;

  constructor(ctx: SiteContext, options: SiteAgentOptions) {
    this.#ctx = ctx;
    this.#options = options;
    this.#health = new SiteHealth(ctx.now(), options.retry);
    const budget = new SubmitBudget(ctx.record.limits.submitsPerMinute, ctx.now());
    this.#submit = { placed: options.placed, there: options.there, budget, committing: undefined };
    this.#watch = freshWatch(ctx);
    const answers = new JobAnswers(ctx, options.secrets, options.remoteIo, options.directReads);
    ctx.site.answerJobs?.((key, request, bytes) => answers.answer(key, request, bytes));
    this.#capacityPoll = { at: 0, wanted: options.capacityWanted };
  }

  get name(): string {
    return this.#ctx.record.name;
  }

  /** A user logged in or fixed the site: try at once. */
  encourage(): void {
    this.#health.encourage();
  }

  /** Makes the next poll complete. */
  listAgain(): void {
    this.#watch.afresh = true;
  }

  /**
   * Runs one round of a work loop. Returns when it wants the next. Throws only errors that end this process, or that
   * mean the queue is unavailable.
   */
  async round(workLoop: WorkLoop): Promise<Again> {
    const now = this.#ctx.now();
    const wait = Math.max(this.#health.waitMs(now), this.#pauses.waitMs(workLoop, now));
    if (wait > 0) return wait;
    try {
      await this.#met();
      const again = await this.#run(workLoop);
      await this.#good();
      if (this.#pauses.passed(workLoop)) await this.#options.onMessage(this.#view, this.name);
      return again;
    } catch (thrown) {
      if (isAboutTheSite(thrown)) return this.#bad(thrown);
      if (!isFault(thrown)) throw thrown;
      return this.#fault(workLoop, thrown);
    }
  }

  /** Pauses this work loop; the site's other loops, and other sites, continue. */
  async #fault(workLoop: WorkLoop, thrown: unknown): Promise<Again> {
    const wait = this.#pauses.of(this.#pauses.failed(workLoop, this.#ctx.now()));
    const doing = `${DOING[workLoop]} site ${this.name}`;
    const error = asFault(thrown, doing);
    this.#options.onFault(doing, asError(thrown), wait);
    this.#trouble = error.message;
    await this.#options.onMessage(this.#view, this.name);
    return wait;
  }

  get #view(): ConnectionView {
    const { view } = this.#health;
    const troubled = WORK_LOOPS.some((workLoop) => this.#pauses.has(workLoop));
    return troubled ? { ...view, trouble: this.#trouble } : view;
  }

  /** Done once, before anything else at the site. */
  #met(): Promise<void> {
    this.#meeting ??= checkCopy(this.#ctx).catch((thrown: unknown) => {
      this.#meeting = undefined;
      throw thrown;
    });
    return this.#meeting;
  }

  #run(workLoop: WorkLoop): Promise<Again> {
    switch (workLoop) {
      case 'submit':
        return submitRound(this.#ctx, this.#submit);
      case 'watch':
        return watchRound(this.#ctx, this.#watch);
      case 'results':
        return resultsRound(this.#ctx);
      case 'cancel':
        return cancelRound(this.#ctx, this.#watch);
      case 'capacityPoll':
        return capacityPollRound(this.#ctx, this.#capacityPoll);
    }
  }

  async #good(): Promise<void> {
    if (!this.#health.good(this.#ctx.now())) return;
    if (this.#silent) this.#watch = freshWatch(this.#ctx);
    this.#silent = false;
    await this.#options.onHealth(this.#view, this.name);
  }

  async #bad(error: GryphusError): Promise<Again> {
    const now = this.#ctx.now();
    const { message } = this.#health.view;
    if (this.#health.bad(error, now, this.#options.random())) await this.#options.onHealth(this.#view, this.name);
    else if (this.#health.view.message !== message) await this.#options.onMessage(this.#view, this.name);
    if (!this.#silent && now - this.#health.view.since >= SILENT_AFTER_MS) {
      this.#silent = true;
      await markSilent(this.#ctx);
    }
    return Math.max(1, this.#health.waitMs(now));
  }
}
