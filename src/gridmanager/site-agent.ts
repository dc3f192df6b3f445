import { GryphusError } from '../errors.ts';
import type { Again, SiteContext } from './context.ts';
import { checkCopy } from './older-copy.ts';
import { cancelRound } from './cancel-lane.ts';
import { SiteHealth, type HealthView } from './health.ts';
import type { Lane } from './lanes.ts';
import { type RetryLimits, SubmitBudget } from './pacing.ts';
import { resultsRound } from './results-lane.ts';
import { submitRound, type SubmitState } from './submit-lane.ts';
import { type SurveyState, surveyRound } from './survey.ts';
import { freshWatch, type WatchState, watchRound } from './watch-lane.ts';
import { markSilent } from './silence.ts';

/** After so long without an answer the site's jobs are *unknown*, milliseconds. */
const SILENT_AFTER_MS = 30_000;

export interface SiteAgentOptions {
  /** Our jobs that have a place at the site, and those of them that may be in its queue. */
  readonly placed: () => Promise<number>;
  readonly there: () => Promise<number>;
  /** A broker looks for sites now. */
  readonly surveyWanted: () => Promise<boolean>;
  readonly random: () => number;
  /** How long the site is left alone after it did not answer, as it is set now. */
  readonly retry: () => RetryLimits;
  /** The site's health changed; told once for each change. */
  readonly onHealth: (view: HealthView, site: string) => Promise<void>;
  /** It is as before, and says something else of why. */
  readonly onWords: (view: HealthView, site: string) => Promise<void>;
}

/** Cares for one site of one manager: runs the lanes' rounds, and keeps account of how the site answers. */
export class SiteAgent {
  readonly #ctx: SiteContext;
  readonly #options: SiteAgentOptions;
  readonly #health: SiteHealth;
  readonly #submit: SubmitState;
  #watch: WatchState;
  readonly #survey: SurveyState;
  #silent = false;
  #meeting: Promise<void> | undefined;

  constructor(ctx: SiteContext, options: SiteAgentOptions) {
    this.#ctx = ctx;
    this.#options = options;
    this.#health = new SiteHealth(ctx.now(), options.retry);
    const budget = new SubmitBudget(ctx.record.limits.submitsPerMinute, ctx.now());
    this.#submit = { placed: options.placed, there: options.there, budget, committing: undefined };
    this.#watch = freshWatch(ctx);
    this.#survey = { at: 0, wanted: options.surveyWanted };
  }

  get name(): string {
    return this.#ctx.record.name;
  }

  /** Somebody logged in, or mended the site: try at once. */
  encourage(): void {
    this.#health.encourage();
  }

  /** The next poll asks for everything. */
  listAgain(): void {
    this.#watch.afresh = true;
  }

  /** One round of a lane; when it wants the next. Only what ends this process is thrown. */
  async round(lane: Lane): Promise<Again> {
    const wait = this.#health.waitMs(this.#ctx.now());
    if (wait > 0) return wait;
    try {
      await this.#met();
      const again = await this.#run(lane);
      await this.#good();
      return again;
    } catch (thrown) {
      if (!isAboutTheSite(thrown)) throw thrown;
      return this.#bad(thrown);
    }
  }

  /** Once, before anything else is done there. */
  #met(): Promise<void> {
    this.#meeting ??= checkCopy(this.#ctx).catch((thrown: unknown) => {
      this.#meeting = undefined;
      throw thrown;
    });
    return this.#meeting;
  }

  #run(lane: Lane): Promise<Again> {
    switch (lane) {
      case 'submit':
        return submitRound(this.#ctx, this.#submit);
      case 'watch':
        return watchRound(this.#ctx, this.#watch);
      case 'results':
        return resultsRound(this.#ctx);
      case 'cancel':
        return cancelRound(this.#ctx, this.#watch);
      case 'survey':
        return surveyRound(this.#ctx, this.#survey);
    }
  }

  async #good(): Promise<void> {
    if (!this.#health.good(this.#ctx.now())) return;
    if (this.#silent) this.#watch = freshWatch(this.#ctx);
    this.#silent = false;
    await this.#options.onHealth(this.#health.view, this.name);
  }

  async #bad(error: GryphusError): Promise<Again> {
    const now = this.#ctx.now();
    const { words } = this.#health.view;
    if (this.#health.bad(error, now, this.#options.random()))
      await this.#options.onHealth(this.#health.view, this.name);
    else if (this.#health.view.words !== words) await this.#options.onWords(this.#health.view, this.name);
    if (!this.#silent && now - this.#health.view.since >= SILENT_AFTER_MS) {
      this.#silent = true;
      await markSilent(this.#ctx);
    }
    return Math.max(1, this.#health.waitMs(now));
  }
}

/** A failure that says something of the site and nothing of us; a job is never failed for one (invariant 5). */
export function isAboutTheSite(thrown: unknown): thrown is GryphusError {
  return thrown instanceof GryphusError && ABOUT_THE_SITE.has(thrown.code);
}

const ABOUT_THE_SITE: ReadonlySet<string> = new Set([
  'site-unreachable',
  'site-busy',
  'site-refused',
  'site-unknown',
  'host-key-changed',
  'host-key-unknown',
  'login-refused',
  'needs-login',
  'credential-expired',
  'credential-invalid',
  'protocol-error',
  'timeout',
  'missing-program',
  'bad-config',
  'disk-full',
]);
