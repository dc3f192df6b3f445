import { gramSiteName, parseGramContact } from '../config/gram-resource.ts';
import { POOL_SITE, SCHEDULER_SITE, type SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { readBoolean, readNumber, readString, type TextSource } from '../job/values.ts';
import { UNIVERSE } from '../job/universe.ts';
import { didYouMean } from '../util/did-you-mean.ts';

export type Destination = Pick<SiteRecord, 'name' | 'credential'> & Partial<Pick<SiteRecord, 'target' | 'batch'>>;
/** HTCondor's numbers of universes that Gryphus does not run (manual, job ClassAd attributes, `JobUniverse`). */
const UNIVERSE_NAMES: Readonly<Record<number, string>> = {
  1: 'standard',
  13: 'vm',
};
/** No site chosen yet: the broker will choose one. */
const THE_BROKERS: Destination = { name: '', credential: undefined };

/**
 * Which site a job goes to, according to its universe and grid_resource; without grid_resource it waits for the broker.
 */
export class SiteChooser {
  readonly #sites: ReadonlyMap<string, SiteRecord>;
  readonly #defaultSite: string;
  readonly #problems: ReadonlyMap<string, GryphusError>;

  /** `problems`: why the files of some sites could not be read; these sites are left out. */
  constructor(
    sites: ReadonlyMap<string, SiteRecord>,
    defaultSite: string,
    problems: ReadonlyMap<string, GryphusError> = new Map(),
  ) {
    this.#sites = sites;
    this.#problems = problems;
    this.#defaultSite = defaultSite;
  }

  /**
   * 'bad-input' or 'site-unknown' if there is none; `shared`, from the cluster, applies where the job itself is silent.
   */
  siteFor(attrs: AttrTexts, shared: AttrTexts | undefined): Destination {
    const source = { get: (name: string) => attrs[name] ?? shared?.[name] ?? undefined };
    const universe = readNumber(source, 'JobUniverse') ?? UNIVERSE.vanilla;
    const container = readBoolean(source, 'WantDocker') || readBoolean(source, 'WantContainer');
    if (container && universe !== UNIVERSE.vanilla) {
      throw new GryphusError('bad-input', 'A job in a container image can run only in the pool.', {
        suggestions: ['Use `universe = container`: it runs on workers of the pool that have a container runtime.'],
      });
    }
    if (readBoolean(source, 'WantFlood') && (universe !== UNIVERSE.grid || source.get('GridResource') !== undefined)) {
      throw new GryphusError(
        'bad-input',
        'want_flood = true: the job is for one site, and cannot be queued at several.',
        {
          suggestions: ['Use `universe = grid` without grid_resource: the broker chooses the sites.'],
        },
      );
    }
    switch (universe) {
      case UNIVERSE.local:
        return this.#named('local');
      case UNIVERSE.scheduler:
        return SCHEDULER_SITE;
      case UNIVERSE.java:
        if (source.get('GridResource') !== undefined) return this.#gridSite(source);
        return readBoolean(source, 'WantGlidein') ? POOL_SITE : this.#named(this.#defaultSite);
      case UNIVERSE.vanilla:
        return container || readBoolean(source, 'WantGlidein') ? POOL_SITE : this.#named(this.#defaultSite);
      case UNIVERSE.grid:
        return this.#gridSite(source);
      case UNIVERSE.parallel:
      case UNIVERSE.mpi:
        return this.#parallelSite(source);
      default:
        throw new GryphusError(
          'bad-input',
          `Jobs of the ${UNIVERSE_NAMES[universe] ?? 'unknown'} universe (${universe}) cannot be run here.`,
          {
            suggestions: ['Use the vanilla, java, grid, parallel, local or scheduler universe.'],
          },
        );
    }
  }

  /** The site of jobs that name none. */
  get defaultSite(): string {
    return this.#defaultSite;
  }

  /** Whether a site of this name is configured; the pool always is. */
  has(name: string): boolean {
    return name === POOL_SITE.name || this.#sites.has(name) || this.#problems.has(name);
  }

  /** A site by its name, or by a value of grid_resource. */
  site(message: string): SiteRecord {
    return /\s/.test(message.trim()) ? this.#byResource(message) : this.#named(message.trim());
  }

  /** The machines come from a site's batch system, or from the pool's dedicated scheduler. */
  #parallelSite(source: TextSource): Destination {
    if (source.get('GridResource') !== undefined) return this.#gridSite(source);
    return readBoolean(source, 'WantGlidein') ? POOL_SITE : this.#named(this.#defaultSite);
  }

  #gridSite(source: TextSource): Destination {
    const resource = readString(source, 'GridResource');
    return resource === undefined ? THE_BROKERS : this.#byResource(resource);
  }

  /** `batch SYSTEM [SITE]`, and HTCondor's old form without `batch`. */
  #byResource(resource: string): SiteRecord {
    const words = resource.split(/\s+/).filter((word) => word !== '');
    if (words[0]?.toLowerCase() === 'gt2') return this.#gram(words.slice(1).join(' '));
    const [system = '', name] = words[0]?.toLowerCase() === 'batch' ? words.slice(1) : words;
    const fitting = [...this.#sites.values()].filter((site) => site.batch === system.toLowerCase());
    if (name !== undefined) return this.#checked(this.#named(name), system, resource);
    const [only, ...others] = fitting;
    if (!only) throw this.#nowhere(system, resource);
    if (others.length > 0) {
      throw new GryphusError(
        'bad-input',
        `grid_resource = ${resource} matches ${fitting.length} sites: ${fitting.map((s) => s.name).join(', ')}.`,
        {
          suggestions: [`Name one: grid_resource = batch ${system} ${only.name}`],
        },
      );
    }
    return only;
  }

  /** A GRAM service: by its file's name, or by its contact, with or without a file. */
  #gram(contact: string): SiteRecord {
    const named = this.#sites.get(contact);
    if (named?.target.kind === 'gram') return named;
    const name = gramSiteName(parseGramContact(contact));
    const described = [...this.#sites.values()].find(
      ({ target }) => target.kind === 'gram' && gramSiteName(target) === name,
    );
    return described ?? this.#named(name);
  }

  #checked(site: SiteRecord, system: string, resource: string): SiteRecord {
    if (site.batch === system.toLowerCase()) return site;
    throw new GryphusError(
      'bad-input',
      `grid_resource = ${resource}: site ${site.name} runs ${site.batch}, not ${system}.`,
      {
        suggestions: [`grid_resource = batch ${site.batch} ${site.name}`],
      },
    );
  }

  #named(name: string): SiteRecord {
    if (name === POOL_SITE.name) return POOL_SITE;
    const site = this.#sites.get(name);
    if (site) return site;
    const problem = this.#problems.get(name);
    if (problem) throw problem;
    const near = didYouMean(name, [...this.#sites.keys(), POOL_SITE.name]);
    throw new GryphusError('site-unknown', `There is no site '${name}'.`, {
      suggestions: [
        ...(near === undefined ? [] : [`Did you mean '${near}'?`]),
        `gryphus site add ${name} ssh://user@host --batch slurm`,
        `Existing sites: ${[...this.#sites.keys()].join(', ')}.`,
      ],
    });
  }

  #nowhere(system: string, resource: string): GryphusError {
    return new GryphusError(
      'site-unknown',
      `grid_resource = ${resource} matches no site: none runs ${system || 'an unnamed batch system'}.`,
      {
        suggestions: [`gryphus site add NAME ssh://user@host --batch ${system || 'slurm'}`],
      },
    );
  }
}
