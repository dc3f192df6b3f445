import type { BackoffView } from '../queue/tables.ts';
import type { Report } from '../site/contract.ts';
import { Breaker } from './breaker.ts';
import { LearnedLimit } from './learned-limit.ts';
import { SITE_CAUSES } from '../site/causes.ts';

/** Causes that count against the site, not the job. */
const ITS_FAULT: ReadonlySet<string> = new Set(['node-fail', 'boot-fail', 'vanished', 'requeued']);

/** How many jobs a site may be given: combines the limit learned from its refusals with its circuit breaker. */
export class SiteBackoff {
  readonly #limit: LearnedLimit;
  readonly #breaker: Breaker;
  readonly #save: (view: BackoffView) => Promise<void>;
  #saved: string;

  /** `known`: what an earlier process learned; `save` is called whenever the view changes. */
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

  /** How many more jobs the site may be given now; `there`: how many it already has. */
  available(there: number, now: number): number {
    return Math.min(this.#limit.available(there, now), this.#breaker.available(now));
  }

  /** Milliseconds after which there may be capacity. */
  waitMs(there: number, now: number): number {
    return Math.max(this.#limit.waitMs(there, now), this.#breaker.waitMs(now));
  }

  /** The site accepted jobs; `there` includes them. */
  async taken(there: number, now: number): Promise<void> {
    this.#limit.taken(there, now);
    this.#breaker.sent(now);
    await this.#tell();
  }

  /** The site refused another job while it had `there`. */
  async full(there: number, message: string, now: number): Promise<void> {
    this.#limit.refused(there, message, now);
    await this.#tell();
  }

  /** Learns from the reports of one poll of the site. */
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
