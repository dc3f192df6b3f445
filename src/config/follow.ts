import { existsSync, readdirSync, statSync } from 'node:fs';
import { asError, type GryphusError } from '../errors.ts';
import { eachSecond } from '../util/each-second.ts';
import type { Paths } from './paths.ts';
import { loadSettings, SETTINGS, type Settings } from './settings.ts';
import { loadSite, LOCAL_SITE, siteFile, type SiteRecord, Sites, withBuiltIn } from './sites.ts';

export interface FollowedSettings {
  /** Always current: keep this object and read each setting only when it is used. */
  readonly settings: Settings;
  /** Starts to look for changes. Separate because its callbacks are made from the settings. */
  readonly follow: (listener: {
    readonly changed?: (now: Settings) => void;
    readonly wrong: (message: string) => void;
    /** How often it looks, seconds; default: 1. */
    readonly every?: number;
  }) => void;
  readonly close: () => void;
}

/**
 * Keeps the settings in step with `config.toml` while a daemon runs. If the file becomes invalid, the previous settings
 * stay in force, with one warning. `redis.*` and `log.max_size` are read only when a daemon starts.
 */
export async function followSettings(paths: Paths): Promise<FollowedSettings> {
  let signature = signatureOf(paths.configFile);
  let current = await loadSettings(paths);
  const live = Object.defineProperties(
    {},
    Object.fromEntries(
      Object.keys(SETTINGS).map((key) => [key, { enumerable: true, get: () => current[key as keyof Settings] }]),
    ),
  ) as Settings;
  let end: (() => void) | undefined;
  const look = (listener: Parameters<FollowedSettings['follow']>[0]) => {
    const now = signatureOf(paths.configFile);
    if (now === signature) return;
    signature = now;
    loadSettings(paths).then(
      (fresh) => {
        if (JSON.stringify(fresh) === JSON.stringify(current)) return;
        current = fresh;
        listener.changed?.(live);
      },
      (thrown: unknown) => listener.wrong(`${asError(thrown).message} The previous settings stay in force.`),
    );
  };
  return {
    settings: live,
    follow: (listener) => {
      end ??= eachSecond(() => look(listener), { every: listener.every ?? 1 });
    },
    close: () => end?.(),
  };
}

/** What was last read from one site's file. */
interface Page {
  readonly signature: string;
  /** The last valid version. */
  readonly record: SiteRecord | undefined;
  readonly problem: GryphusError | undefined;
}

/**
 * The sites as their files are now. A damaged file (half written, or invalid) does not affect the others: its last
 * valid version stays in use. If there never was one, the site is left out, and `problem` says why.
 */
export class SiteBook {
  readonly #paths: Paths;
  readonly #wrong: (message: string) => void;
  readonly #pages = new Map<string, Page>();

  constructor(paths: Paths, wrong: (message: string) => void = () => undefined) {
    this.#paths = paths;
    this.#wrong = wrong;
  }

  /** One of the sites, with the pool and the site of the scheduler universe; only its own file is looked at. */
  async site(name: string): Promise<SiteRecord | undefined> {
    const isFile = existsSync(siteFile(this.#paths, name));
    if (!isFile) this.#pages.delete(name);
    const record = isFile ? (await this.#page(name)).record : undefined;
    return record ?? withBuiltIn(new Sites([[LOCAL_SITE.name, LOCAL_SITE]])).get(name);
  }

  /** The user's sites, `local` first, then alphabetically; only changed files are read again. */
  async sites(): Promise<ReadonlyMap<string, SiteRecord>> {
    const names = siteNames(this.#paths);
    for (const name of this.#pages.keys()) if (!names.includes(name)) this.#pages.delete(name);
    const sites = new Sites([[LOCAL_SITE.name, LOCAL_SITE]]);
    for (const name of names) {
      const record = (await this.#page(name)).record;
      if (record) sites.set(name, record);
    }
    return sites;
  }

  /** Includes the pool and the site of the scheduler universe. */
  async allSites(): Promise<ReadonlyMap<string, SiteRecord>> {
    return withBuiltIn(await this.sites());
  }

  /** Why this site's file could not be read at the last look. */
  problem(name: string): GryphusError | undefined {
    return this.#pages.get(name)?.problem;
  }

  get problems(): ReadonlyMap<string, GryphusError> {
    return new Map([...this.#pages].flatMap(([name, { problem }]) => (problem ? [[name, problem] as const] : [])));
  }

  async #page(name: string): Promise<Page> {
    const signature = signatureOf(siteFile(this.#paths, name));
    const known = this.#pages.get(name);
    if (known?.signature === signature) return known;
    let page: Page;
    try {
      page = { signature, record: await loadSite(this.#paths, name), problem: undefined };
    } catch (thrown) {
      const problem = asError(thrown) as GryphusError;
      page = { signature, record: known?.record, problem };
      this.#wrong(problem.message);
    }
    this.#pages.set(name, page);
    return page;
  }
}

function siteNames({ sitesDir }: Paths): string[] {
  if (!existsSync(sitesDir)) return [];
  return readdirSync(sitesDir)
    .filter((file) => file.endsWith('.toml'))
    .map((file) => file.slice(0, -'.toml'.length))
    .sort();
}

/** Differs after each write. */
function signatureOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found ? `${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}` : '';
}
