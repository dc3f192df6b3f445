import { existsSync } from 'node:fs';
import type { Found } from '../backends/found.ts';
import { configDocs } from '../config/docs.ts';
import { settingsInFile, writeSetting } from '../config/edit.ts';
import { loadPaths, type Paths } from '../config/paths.ts';
import { parseSiteUrl } from '../config/site-url.ts';
import { loadSettings, SETTINGS, type Settings } from '../config/settings.ts';
import { loadSite, loadSites, saveSite, siteFile, siteFrom, type SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import type { AskUser, CheckStep, OpenOptions } from './types.ts';

/** The keys of a site's file as a user would write them there. */
export type SiteKeys = Readonly<Record<string, string | number | undefined>>;

/** The files of an agent's configuration: settings and sites. Needs no daemon and starts none. */
export class Configuration {
  readonly paths: Paths;

  constructor({ home }: Pick<OpenOptions, 'home'> = {}) {
    this.paths = loadPaths(home === undefined ? process.env : { ...process.env, GRYPHUS_HOME: home });
  }

  /** Every key of config.toml. */
  static get keys(): readonly string[] {
    return Object.keys(SETTINGS);
  }

  /** What every key means, of sites and credentials too, as Markdown. */
  static docs(): string {
    return configDocs();
  }

  /** Every setting, presets where the file says nothing. Rejects with 'bad-config', file and line. */
  settings(): Promise<Settings> {
    return loadSettings(this.paths);
  }

  /** The keys that config.toml sets itself. */
  settingsInFile(): Promise<ReadonlySet<string>> {
    return settingsInFile(this.paths);
  }

  /** Writes one key, or takes it out (`undefined`); the rest of the file stays as it is. */
  set(key: string, value: string | undefined): Promise<void> {
    return writeSetting(this.paths, key, value);
  }

  /** All sites by name. */
  sites(): Promise<ReadonlyMap<string, SiteRecord>> {
    return loadSites(this.paths);
  }

  /** Rejects with 'site-unknown' where there is none of the name. */
  site(name: string): Promise<SiteRecord> {
    return loadSite(this.paths, name);
  }

  /** The file that describes a site, or would; `there`: it does. */
  siteFile(name: string): { readonly file: string; readonly there: boolean } {
    const file = siteFile(this.paths, name);
    return { file, there: existsSync(file) };
  }

  /**
   * Writes a site. Without a `batch` key it is looked there which batch systems it has, and `found` is told; nothing is
   * written where it cannot be asked, or where a site of the name is there already and is not to be replaced ('conflict').
   */
  async addSite(
    name: string,
    keys: SiteKeys & { readonly url: string },
    how: {
      readonly replace?: boolean;
      readonly ask?: AskUser;
      readonly found?: (found: readonly Found[]) => void;
    } = {},
  ): Promise<SiteRecord> {
    const { file, there } = this.siteFile(name);
    const { kind } = parseSiteUrl(keys.url);
    if (there && how.replace !== true) {
      throw new GryphusError('conflict', `There is a site '${name}' already.`, {
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

  /** Sends a test by every way that alarms are set to take; each way's end, as it comes. */
  async *testAlarms(): AsyncGenerator<CheckStep> {
    const { testAlarms } = await import('./alarm.ts');
    yield* testAlarms(this.paths);
  }

  async #batchSystems(name: string, keys: SiteKeys, ask: AskUser | undefined): Promise<readonly Found[]> {
    const { findBatch } = await import('./find-batch.ts');
    try {
      return await findBatch(await siteFrom(this.paths, name, keys), this.paths, ask);
    } catch (thrown) {
      if (!(thrown instanceof GryphusError) || thrown.code === 'bad-input') throw thrown;
      const offline = 'To add it without asking it, name its batch system: --batch slurm, say (fork: plain processes).';
      throw new GryphusError(thrown.code, thrown.message, {
        cause: thrown,
        suggestions: [...thrown.suggestions, offline],
      });
    }
  }
}
