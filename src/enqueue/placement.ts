import type { AttrTexts } from '../job/attrs.ts';
import { managerIdentity } from '../job/identity.ts';
import { quoted, readString } from '../job/values.ts';
import type { ProcInput } from '../queue/api.ts';
import type { SubmitPolicy } from '../submit/api.ts';
import type { Destination, SiteChooser } from './site-choice.ts';

type Placed = Pick<ProcInput, 'site' | 'manager'>;

/** Where the jobs of one cluster go, and which manager cares for each. */
export class Placement {
  readonly #chooser: SiteChooser;
  readonly #owner: string;
  readonly #shared: AttrTexts;
  /** Where those go that do not differ from the others. */
  readonly known: Destination;

  constructor(chooser: SiteChooser, owner: string, shared: AttrTexts) {
    this.#chooser = chooser;
    this.#owner = owner;
    this.#shared = shared;
    this.known = chooser.siteFor(shared, undefined);
  }

  get manager(): string {
    return this.#managerFor(this.#shared, this.known);
  }

  /** What one job differs in; empty where it goes with the others. */
  of(attrs: AttrTexts): Placed {
    const site = this.siteOf(attrs);
    if (site.name === this.known.name && !(PROXY_SUBJECT in attrs)) return {};
    return { site: site.name, manager: this.#managerFor({ ...this.#shared, ...attrs }, site) };
  }

  siteOf(attrs: AttrTexts): Destination {
    const elsewhere = ['GridResource', 'JobUniverse', 'WantFlood'].some((name) => name in attrs);
    return elsewhere ? this.#chooser.siteFor(attrs, this.#shared) : this.known;
  }

  /** Jobs with a proxy have a manager for its subject: one user's trouble with one identity is not that of another. */
  #managerFor(attrs: AttrTexts, site: Destination): string {
    const subject = readString({ get: (name) => attrs[name] ?? undefined }, PROXY_SUBJECT);
    return managerIdentity(this.#owner, subject ?? site.credential);
  }
}

const PROXY_SUBJECT = 'x509userproxysubject';
const PROXY_FILE = 'x509userproxy';

/**
 * A proc that is made later, with what the submit would have read out of a proxy that is its own. One that cannot be used
 * is found by the watch over credentials.
 */
export function withProxy(attrs: AttrTexts, check: NonNullable<SubmitPolicy['checkProxy']>): AttrTexts {
  const path = readString({ get: (name) => attrs[name] ?? undefined }, PROXY_FILE);
  if (path === undefined || PROXY_SUBJECT in attrs) return attrs;
  const found = check(path);
  if (!found.ok) return attrs;
  const read = Object.entries(found.value.attributes ?? {}).map(([name, value]) => [
    name,
    typeof value === 'number' ? String(value) : quoted(value),
  ]);
  return { ...attrs, ...Object.fromEntries(read) };
}
