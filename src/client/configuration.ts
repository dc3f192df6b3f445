import { existsSync } from 'node:fs';
import type { FoundBatchSystem } from '../backends/found.ts';
import { configDocs } from '../config/docs.ts';
import { settingsInFile, writeSetting } from '../config/edit.ts';
import { loadPaths, type Paths } from '../config/paths.ts';
import { parseSiteUrl } from '../config/site-url.ts';
import { loadSettings, SETTINGS, type Settings } from '../config/settings.ts';
import { loadSite, loadSites, saveSite, siteFile, siteFrom, type SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import type { FlockClient } from './flock.ts';
import type { MachineOwner } from './machine-owner.ts';
import type { AskUser, CheckStep, OpenOptions } from './types.ts';

/** The keys of a site's file, as a user would write them. */
export type SiteKeys = Readonly<Record<string, string | number | undefined>>;

/** An agent's configuration files: settings and sites. Needs no daemon and starts none. */
export class Configuration {
  readonly paths: Paths;

  constructor({ home }: Pick<OpenOptions, 'home'> = {}) {
    this.paths = loadPaths(home === undefined ? process.env : { ...process.env, GRYPHUS_HOME: home });
  }

  /** Every key of config.toml. */
  static get keys(): readonly string[] {
    return Object.keys(SETTINGS);
  }

  /** What every key means, including those of sites and credentials, as Markdown; or what one does, '' if there is none. */
  static docs(key?: string): string {
    return configDocs(key);
  }

  /** Every setting, with defaults for what the file omits. Rejects with 'bad-config', file and line. */
  settings(): Promise<Settings> {
    return loadSettings(this.paths);
  }

  /** The keys that config.toml sets itself. */
  settingsInFile(): Promise<ReadonlySet<string>> {
    return settingsInFile(this.paths);
  }

  /** Writes one key, or removes it if `value` is undefined; the rest of the file stays as it is. */
  set(key: string, value: string | undefined): Promise<void> {
    return writeSetting(this.paths, key, value);
  }

  /** What the owner of this machine says to its worker, and what shows whether they are there. */
  async machineOwner(): Promise<MachineOwner> {
    const { MachineOwner } = await import('./machine-owner.ts');
    return new MachineOwner(this.paths);
  }

  /** Agreements with the owners of other pools. */
  async flock(): Promise<FlockClient> {
    const { FlockClient } = await import('./flock.ts');
    return new FlockClient(this.paths);
  }

  /** Checks this machine step by step for what the agent needs. Starts and changes nothing. */
  async *examine(): AsyncGenerator<CheckStep> {
    const { examine } = await import('./doctor.ts');
    yield* examine(this.paths);
  }

  /** All sites by name. */
  sites(): Promise<ReadonlyMap<string, SiteRecord>> {
    return loadSites(this.paths);
  }

  /** Rejects with 'site-unknown' if there is no such site. */
  site(name: string): Promise<SiteRecord> {
    return loadSite(this.paths, name);
  }

  /** The file that describes a site; `there`: whether it exists. */
  siteFile(name: string): { readonly file: string; readonly there: boolean } {
    const file = siteFile(this.paths, name);
    return { file, there: existsSync(file) };
  }

  /**
   * Writes a site's file. Without a `batch` key, looks there for batch systems and reports them to `found`. Writes
   * nothing if the site cannot be asked, or already exists and must not be replaced ('conflict').
   */
  async addSite(
    name: string,
    keys: SiteKeys & { readonly url: string },
    how: {
      readonly replace?: boolean;
      readonly ask?: AskUser;
      readonly found?: (found: readonly FoundBatchSystem[]) => void;
    } = {},
  ): Promise<SiteRecord> {
    const { file, there } = this.siteFile(name);
    const { kind } = parseSiteUrl(keys.url);
    if (there && how.replace !== true) {
      throw new GryphusError('conflict', `A site '${name}' already exists.`, {
        suggestions: [`Change it in ${file}, or add --force to replace it.`],
      });
    }
    const given = Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined));
    if (kind === 'gram') given['batch'] = 'gt2';
    else if (given['batch'] === undefined) {
      const found = await this.#batchSystems(name, given, how.ask);
      how.found?.(found);
      given['batch'] = found[0]?.batch ?? 'fork';
    }
    return saveSite(this.paths, name, given);
  }

  /** Sends a test over every configured alarm channel; yields each result as it comes. */
  async *testAlarms(): AsyncGenerator<CheckStep> {
    const { testAlarms } = await import('./alarm.ts');
    yield* testAlarms(this.paths);
  }

  async #batchSystems(name: string, keys: SiteKeys, ask: AskUser | undefined): Promise<readonly FoundBatchSystem[]> {
    const { findBatch } = await import('./find-batch.ts');
    try {
      return await findBatch(await siteFrom(this.paths, name, keys), this.paths, ask);
    } catch (thrown) {
      if (!(thrown instanceof GryphusError) || thrown.code === 'bad-input') throw thrown;
      const offline =
        'To add it without contacting it, name its batch system, such as --batch slurm (fork: plain processes).';
      throw new GryphusError(thrown.code, thrown.message, {
        cause: thrown,
        suggestions: [...thrown.suggestions, offline],
      });
    }
  }
}
