import type { SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import type { Site } from '../site/contract.ts';
import type { SiteBackoff } from './backoff.ts';
import { SiteProxies } from './proxies.ts';
import type { SiteAgent } from './site-agent.ts';
import type { SiteContext } from './context.ts';

/** What successive agents of a site share when a change of its file replaces the agent. */
export type SiteShare = Pick<SiteContext, 'proxies' | 'underway' | 'coming' | 'backoff'>;

export interface OpenSitesOptions {
  /** A site as configured now. */
  readonly loadSite: (name: string) => Promise<SiteRecord | undefined>;
  /** Why the file of a site that `loadSite` does not return could not be read. */
  readonly problem: (name: string) => GryphusError | undefined;
  readonly openSite: (record: SiteRecord) => Promise<Site>;
  /** What is known about how many jobs the site accepts. */
  readonly backoffOf: (name: string) => Promise<SiteBackoff>;
  readonly agentFor: (record: SiteRecord, site: Site, share: SiteShare) => SiteAgent;
  readonly now: () => number;
}

interface OpenSite {
  readonly record: SiteRecord;
  readonly agent: SiteAgent;
  readonly site: Site;
  readonly share: SiteShare;
  /** Number of current users; once replaced, the site is closed when the last one is done. */
  users: number;
  replaced: boolean;
}

/** How often the file of a site in use is looked at, milliseconds. */
const LOOK_MS = 1000;

/** The sites that a GridManager has open, following changes of their files. */
export class OpenSites {
  readonly #options: OpenSitesOptions;
  readonly #sites = new Map<string, Promise<OpenSite>>();
  readonly #lookedAt = new Map<string, number>();

  constructor(options: OpenSitesOptions) {
    this.#options = options;
  }

  get names(): readonly string[] {
    return [...this.#sites.keys()];
  }

  /** Opens the site if necessary. Rejects with 'site-unknown' or 'bad-config' if it is not configured properly. */
  async use<T>(
    name: string,
    work: (open: { readonly agent: SiteAgent; readonly site: Site }) => Promise<T>,
  ): Promise<T> {
    await this.#followFile(name);
    const open = await this.#of(name);
    open.users += 1;
    try {
      return await work(open);
    } finally {
      open.users -= 1;
      if (open.replaced && open.users === 0) await open.site.close().catch(() => undefined);
    }
  }

  async close(): Promise<void> {
    const open = await Promise.allSettled(this.#sites.values());
    await Promise.allSettled(open.flatMap((one) => (one.status === 'fulfilled' ? [one.value.site.close()] : [])));
  }

  #of(name: string): Promise<OpenSite> {
    const known = this.#sites.get(name);
    if (known) return known;
    const opening = this.#open(name);
    this.#sites.set(name, opening);
    // A site that is not configured now may be later.
    opening.catch(() => this.#sites.delete(name));
    return opening;
  }

  async #open(name: string): Promise<OpenSite> {
    const record = await this.#options.loadSite(name);
    if (!record) {
      throw this.#options.problem(name) ?? new GryphusError('site-unknown', `There is no site '${name}'.`);
    }
    const backoff = await this.#options.backoffOf(name);
    const site = await this.#options.openSite(record);
    return this.#opened(record, site, { proxies: new SiteProxies(), underway: new Set(), coming: new Map(), backoff });
  }

  #opened(record: SiteRecord, site: Site, share: SiteShare): OpenSite {
    return { record, site, share, agent: this.#options.agentFor(record, site, share), users: 0, replaced: false };
  }

  /** Rounds in progress finish with the old configuration; the next ones use the new. */
  async #followFile(name: string): Promise<void> {
    const opening = this.#sites.get(name);
    const now = this.#options.now();
    if (!opening || Math.abs(now - (this.#lookedAt.get(name) ?? Number.NEGATIVE_INFINITY)) < LOOK_MS) return;
    this.#lookedAt.set(name, now);
    const fresh = await this.#options.loadSite(name);
    const open = await opening.catch(() => undefined);
    // A site that is no longer configured is kept for the jobs that are there.
    if (!open || !fresh || this.#sites.get(name) !== opening) return;
    // As long as its file has not changed.
    if (fresh === open.record || JSON.stringify(fresh) === JSON.stringify(open.record)) return;
    if (connectionOf(fresh) === connectionOf(open.record)) {
      this.#sites.set(name, Promise.resolve(this.#opened(fresh, open.site, open.share)));
      return;
    }
    this.#sites.delete(name);
    open.replaced = true;
    if (open.users === 0) await open.site.close().catch(() => undefined);
  }
}

/** The fields that a connection depends on; others may change without reconnecting, which would require a new login. */
function connectionOf(record: SiteRecord): string {
  return JSON.stringify([Object.entries(record).filter(([key]) => !PASSING.has(key)), record.limits.running]);
}

const PASSING = new Set(['limits', 'queue', 'project', 'extraArgs', 'walltime', 'cost', 'allocationEnd']);
