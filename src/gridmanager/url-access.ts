import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loginFor } from '../credentials/netrc.ts';
import { atHome } from '../config/credentials.ts';
import type { Paths } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { asError, GryphusError } from '../errors.ts';
import type { UrlFetcher, UrlOptions } from '../staging/url/contract.ts';
import { FETCHERS } from '../staging/url/fetchers.ts';

/** How this user's URLs are accessed: with which fetchers and logins. */
export interface UrlAccess {
  readonly fetchers: readonly UrlFetcher[];
  readonly schemes: readonly string[];
  /** Read again on every call, because logins change. */
  optionsFor(url: URL, proxyFile: string | undefined): Promise<UrlOptions>;
  hasLogin(url: URL): boolean;
}

export function urlAccess(
  paths: Pick<Paths, 'configDir'>,
  settings: Pick<Settings, 'urls.netrc' | 'urls.ca'>,
  fetchers: readonly UrlFetcher[] = FETCHERS,
): UrlAccess {
  // The settings are read at each call, since they follow config.toml.
  const login = (url: URL) => loginFor(atHome(settings['urls.netrc'] ?? join(paths.configDir, 'netrc')), url.hostname);
  return {
    fetchers,
    schemes: fetchers.flatMap((one) => one.schemes),
    hasLogin: (url) => login(url) !== undefined,
    async optionsFor(url, proxyFile) {
      const found = login(url);
      const ca = settings['urls.ca'];
      const authorities = ca === undefined ? undefined : await readAuthorities(atHome(ca));
      return {
        ...(found === undefined ? {} : { login: found }),
        ...(proxyFile === undefined ? {} : { proxyFile }),
        ...(authorities === undefined ? {} : { ca: authorities }),
      };
    },
  };
}

async function readAuthorities(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((thrown: unknown) => {
    throw new GryphusError('bad-config', `The file ${path} of urls.ca cannot be read: ${asError(thrown).message}.`, {
      suggestions: ['Correct `ca` under [urls] in config.toml.'],
    });
  });
}
