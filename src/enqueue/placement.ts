import type { AttrTexts } from '../job/attrs.ts';
import { managerIdentity } from '../job/identity.ts';
import { inAd, quoted, readString } from '../job/values.ts';
import type { ProcInput } from '../queue/api.ts';
import type { SubmitPolicy } from '../submit/api.ts';
import type { Destination, SiteChooser } from './site-choice.ts';

type Placed = Pick<ProcInput, 'site' | 'manager'>;

/** Where the jobs of one cluster go, and which manager is responsible for each. */
export class Placement {
  readonly #chooser: SiteChooser;
  readonly #owner: string;
  readonly #shared: AttrTexts;
  /** The destination of jobs that do not differ from the others. */
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

  /** How one job's placement differs; empty if it goes with the others. */
  of(attrs: AttrTexts): Placed {
    const site = this.siteOf(attrs);
    if (site.name === this.known.name && !(PROXY_SUBJECT in attrs)) return {};
    return { site: site.name, manager: this.#managerFor({ ...this.#shared, ...attrs }, site) };
  }

  siteOf(attrs: AttrTexts): Destination {
    const elsewhere = ['GridResource', 'JobUniverse', 'WantFlood'].some((name) => name in attrs);
    return elsewhere ? this.#chooser.siteFor(attrs, this.#shared) : this.known;
  }

  /**
   * Jobs with a proxy have a manager of their own for its subject: trouble with one identity must not affect another.
   */
  #managerFor(attrs: AttrTexts, site: Destination): string {
    const subject = readString(inAd(attrs), PROXY_SUBJECT);
    return managerIdentity(this.#owner, subject ?? site.credential);
  }
}

const PROXY_SUBJECT = 'x509userproxysubject';
const PROXY_FILE = 'x509userproxy';

/**
 * A proc that is made later, with the attributes that the submit would have read from its own proxy. The watch over
 * credentials will find an unusable one.
 */
export function withProxy(attrs: AttrTexts, check: NonNullable<SubmitPolicy['checkProxy']>): AttrTexts {
  const path = readString(inAd(attrs), PROXY_FILE);
  if (path === undefined || PROXY_SUBJECT in attrs) return attrs;
  const found = check(path);
  if (!found.ok) return attrs;
  const read = Object.entries(found.value.attributes ?? {}).map(([name, value]) => [
    name,
    typeof value === 'number' ? String(value) : quoted(value),
  ]);
  return { ...attrs, ...Object.fromEntries(read) };
}
