import { statSync } from 'node:fs';
import type { Tokens } from '../pool/wire/tokens.ts';

/** The directory is read again until it has been found unchanged so often: a change of the same moment leaves its time as it is. */
const SURE = 3;

/** Which tokens of workers there are for each site: one look at them for all sites of a GridManager. */
export class SiteTokens {
  readonly #tokens: Pick<Tokens, 'all' | 'find' | 'dir'>;
  readonly #siteOf = new Map<string, string>();
  readonly #lookMs: number;
  #bySite: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #changed: bigint | undefined;
  #same = 0;

  /** `lookMs`: a look is good for so long, in milliseconds. */
  constructor(tokens: Pick<Tokens, 'all' | 'find' | 'dir'>, lookMs: number) {
    this.#tokens = tokens;
    this.#lookMs = lookMs;
  }

  /** Those of workers at a site; of workers on this machine, the site is ''. */
  at(site: string): ReadonlySet<string> {
    if (performance.now() - this.#lookedAt >= this.#lookMs) this.#look();
    return this.#bySite.get(site) ?? NONE;
  }

  #look(): void {
    this.#lookedAt = performance.now();
    const changed = statSync(this.#tokens.dir, { bigint: true, throwIfNoEntry: false })?.mtimeNs;
    this.#same = changed === this.#changed ? this.#same + 1 : 0;
    this.#changed = changed;
    if (this.#same > SURE) return;
    const all = new Set(this.#tokens.all());
    for (const known of this.#siteOf.keys()) if (!all.has(known)) this.#siteOf.delete(known);
    const bySite = new Map<string, Set<string>>();
    for (const id of all) {
      let site = this.#siteOf.get(id);
      if (site === undefined) this.#siteOf.set(id, (site = this.#read(id)));
      bySite.set(site, (bySite.get(site) ?? new Set()).add(id));
    }
    this.#bySite = bySite;
  }

  #read(id: string): string {
    const token = this.#tokens.find(id, 0);
    return token === undefined || token.local ? '' : token.site;
  }
}

const NONE: ReadonlySet<string> = new Set();
