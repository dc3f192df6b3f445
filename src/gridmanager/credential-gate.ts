import type { Credentials } from '../config/credentials.ts';
import { type Needs, needsOf } from '../config/credential-needs.ts';
import type { SiteRecord } from '../config/sites.ts';
import { inspect, type Source, undescribed } from '../credentials/sources.ts';
import type { WatchConfig, Watched } from '../credentials/watch/model.ts';
import { mayUse, type Usability } from '../credentials/watch/usability.ts';
import type { JobRecord } from '../queue/api.ts';

export interface GateOptions {
  readonly load: () => Promise<Credentials>;
  readonly limits: Pick<WatchConfig, 'holdBefore' | 'skew'>;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** What was read is used for this long, milliseconds, so that a batch of jobs reads a file only once. */
const BELIEVED_MS = 500;

/** Checked before every use of a site: nothing is started there with a credential that is not valid now. */
export class CredentialGate {
  readonly #options: GateOptions;
  readonly #seen = new Map<string, { readonly at: number; readonly found: Watched }>();
  #described: { readonly at: number; readonly credentials: Credentials } | undefined;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** What credentials the job needs, and whether all of them can be used now. */
  async look(job: JobRecord, site: SiteRecord): Promise<{ readonly usability: Usability; readonly needs: Needs }> {
    const bare = site.credential === undefined && site.allocationEnd === undefined && !job.attrs.has('x509userproxy');
    if (bare) return NOTHING;
    const credentials = await this.#credentials();
    const needs = needsOf(job.attrs, site, credentials);
    const watched = new Map(needs.sources.map((source) => [source.name, this.inspect(source)]));
    for (const [name, problem] of credentials.bad) watched.set(name, undescribed(name, problem));
    const now = Math.floor(this.#options.now() / 1000);
    return { usability: mayUse(needs.names, watched, now, this.#options.limits), needs };
  }

  /** The state of the credential, at most BELIEVED_MS old. */
  inspect(source: Source): Watched {
    const now = this.#options.now();
    const known = this.#seen.get(source.name);
    if (known && Math.abs(now - known.at) < BELIEVED_MS) return known.found;
    const found = inspect(source);
    this.#seen.set(source.name, { at: now, found });
    return found;
  }

  async #credentials(): Promise<Credentials> {
    const now = this.#options.now();
    if (!this.#described || Math.abs(now - this.#described.at) >= BELIEVED_MS)
      this.#described = { at: now, credentials: await this.#options.load() };
    return this.#described.credentials;
  }
}

const NOTHING = { usability: { is: 'good' }, needs: { names: [], sources: [], proxy: undefined } } as const;
