import type { Report } from '../site/contract.ts';
import { Breaker, type OutOfUse } from './breaker.ts';
import { type Learned, LearnedLimit } from './learned-limit.ts';
import { SITE_CAUSES } from './site-causes.ts';

/** How we keep away from a site that is full or broken: in the queue under SITE_BACKOFF by `<manager>/<site>`. */
export interface BackoffView {
  readonly learned?: Learned;
  readonly outOfUse?: OutOfUse;
}

export const SITE_BACKOFF = 'site-backoff';

/** Ends that speak against the site, not against the job. */
const ITS_FAULT: ReadonlySet<string> = new Set(['node-fail', 'boot-fail', 'vanished', 'requeued']);

/** How many jobs one site is given: what its refusals taught, and whether it is in use at all. */
export class SiteBackoff {
  readonly #limit: LearnedLimit;
  readonly #breaker: Breaker;
  readonly #save: (view: BackoffView) => Promise<void>;
  #saved: string;

  /** `known`: what an earlier process had learned; `save` is called when there is news. */
  constructor(known: BackoffView | undefined, now: number, save: (view: BackoffView) => Promise<void>) {
    this.#limit = new LearnedLimit(known?.learned, now);
    this.#breaker = new Breaker(known?.outOfUse);
    this.#save = save;
    this.#saved = JSON.stringify(known ?? {});
  }

  get view(): BackoffView {
    const { learned } = this.#limit;
    const outOfUse = this.#breaker.open;
    return { ...(learned === undefined ? {} : { learned }), ...(outOfUse === undefined ? {} : { outOfUse }) };
  }

  /** How many more jobs the site may be given now; `there`: those that it has. */
  room(there: number, now: number): number {
    return Math.min(this.#limit.room(there, now), this.#breaker.room(now));
  }

  /** Milliseconds after which there may be room. */
  waitMs(there: number, now: number): number {
    return Math.max(this.#limit.waitMs(there, now), this.#breaker.waitMs(now));
  }

  /** It took jobs; `there` counts them. */
  async taken(there: number, now: number): Promise<void> {
    this.#limit.taken(there, now);
    this.#breaker.sent(now);
    await this.#tell();
  }

  /** It refused one more than `there`. */
  async full(there: number, message: string, now: number): Promise<void> {
    this.#limit.refused(there, message, now);
    await this.#tell();
  }

  /** What a look at the site brought. */
  async heard(reports: readonly Report[], now: number): Promise<void> {
    const failures = reports.flatMap((report) => failureOf(report) ?? []);
    if (reports.some((report) => report.is === 'ended' && report.how.kind !== 'by-site')) this.#breaker.succeeded();
    else if (failures.length > 0) this.#breaker.failed(failures.length, failures.at(-1) ?? '', now);
    else return;
    await this.#tell();
  }

  async #tell(): Promise<void> {
    const text = JSON.stringify(this.view);
    if (text === this.#saved) return;
    this.#saved = text;
    await this.#save(this.view);
  }
}

function failureOf(report: Report): string | undefined {
  if (report.is === 'lost') return `it lost jobs before they started (${report.why})`;
  if (report.is !== 'ended' || report.how.kind !== 'by-site' || !ITS_FAULT.has(report.how.cause)) return undefined;
  return `${SITE_CAUSES[report.how.cause].says} (${report.how.message})`;
}
