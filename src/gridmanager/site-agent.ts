import { asError, type GryphusError } from '../errors.ts';
import { Pauses } from '../util/pauses.ts';
import { isAboutTheSite } from './about-the-site.ts';
import type { Again, SiteContext } from './context.ts';
import { checkCopy } from './older-copy.ts';
import { cancelRound } from './cancel-loop.ts';
import { asFault, isFault, type ReportFault } from './faults.ts';
import { SiteHealth, type HealthView } from './health.ts';
import { type WorkLoop, WORK_LOOPS } from './work-loops.ts';
import { type RetryLimits, SubmitBudget } from './pacing.ts';
import { resultsRound } from './results-loop.ts';
import { submitRound, type SubmitState } from './submit-loop.ts';
import { type CapacityPollState, capacityPollRound } from './capacity-poll.ts';
import { freshWatch, type WatchState, watchRound } from './watch-loop.ts';
import { markSilent } from './silence.ts';

/** After so long without an answer the site's jobs are *unknown*, milliseconds. */
const SILENT_AFTER_MS = 30_000;

const DOING: Readonly<Record<WorkLoop, string>> = {
  submit: 'sending jobs to',
  watch: 'watching the jobs of',
  results: 'bringing home the results of',
  cancel: 'withdrawing jobs from',
  capacityPoll: 'asking what there is at',
};

export interface SiteAgentOptions {
  /** Our jobs that have a place at the site, and those of them that may be in its queue. */
  readonly placed: () => Promise<number>;
  readonly there: () => Promise<number>;
  /** A broker looks for sites now. */
  readonly capacityWanted: () => Promise<boolean>;
  readonly random: () => number;
  /** How long the site is left alone after it did not answer, as it is set now. */
  readonly retry: () => RetryLimits;
  /** The site's health changed; told once for each change. */
  readonly onHealth: (view: HealthView, site: string) => Promise<void>;
  /** It is as before, and says something else of why. */
  readonly onWords: (view: HealthView, site: string) => Promise<void>;
  /** A round met what nobody foresaw. */
  readonly onFault: ReportFault;
}

/** Cares for one site of one manager: runs the work loops' rounds, and keeps account of how the site answers. */
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
    this.#capacityPoll = { at: 0, wanted: options.capacityWanted };
  }

  get name(): string {
    return this.#ctx.record.name;
  }

  /** Somebody logged in, or fixed the site: try at once. */
  encourage(): void {
    this.#health.encourage();
  }

  /** The next poll asks for everything. */
  listAgain(): void {
    this.#watch.afresh = true;
  }

  /** One round of a work loop; when it wants the next. Only what ends this process, or waits for the queue, is thrown. */
  async round(workLoop: WorkLoop): Promise<Again> {
    const now = this.#ctx.now();
    const wait = Math.max(this.#health.waitMs(now), this.#pauses.waitMs(workLoop, now));
    if (wait > 0) return wait;
    try {
      await this.#met();
      const again = await this.#run(workLoop);
      await this.#good();
      if (this.#pauses.passed(workLoop)) await this.#options.onWords(this.#view, this.name);
      return again;
    } catch (thrown) {
      if (isAboutTheSite(thrown)) return this.#bad(thrown);
      if (!isFault(thrown)) throw thrown;
      return this.#fault(workLoop, thrown);
    }
  }

  /** The work loop is left alone for a while; the site's others, and other sites, go on. */
  async #fault(workLoop: WorkLoop, thrown: unknown): Promise<Again> {
    const wait = this.#pauses.of(this.#pauses.failed(workLoop, this.#ctx.now()));
    const doing = `${DOING[workLoop]} site ${this.name}`;
    const error = asFault(thrown, doing);
    this.#options.onFault(doing, asError(thrown), wait);
    this.#trouble = error.message;
    await this.#options.onWords(this.#view, this.name);
    return wait;
  }

  get #view(): HealthView {
    const { view } = this.#health;
    const troubled = WORK_LOOPS.some((workLoop) => this.#pauses.has(workLoop));
    return troubled ? { ...view, trouble: this.#trouble } : view;
  }

  /** Once, before anything else is done there. */
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
    else if (this.#health.view.message !== message) await this.#options.onWords(this.#view, this.name);
    if (!this.#silent && now - this.#health.view.since >= SILENT_AFTER_MS) {
      this.#silent = true;
      await markSilent(this.#ctx);
    }
    return Math.max(1, this.#health.waitMs(now));
  }
}
