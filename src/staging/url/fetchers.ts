import type { UrlFetcher } from './contract.ts';
import { ftpFetcher } from './ftp.ts';
import { schemeOf } from './file-url.ts';
import { httpFetcher } from './http.ts';

/** GridFTP's own code is loaded for the first such URL. */
const gsiftpFetcher: UrlFetcher = {
  schemes: ['gsiftp'],
  fetch: async (...args) => (await import('./gsiftp.ts')).gsiftpFetcher.fetch(...args),
  store: async (...args) => (await import('./gsiftp.ts')).gsiftpFetcher.store(...args),
  remove: async (...args) => (await import('./gsiftp.ts')).gsiftpFetcher.remove(...args),
};

/** Every way to access a URL. */
export const FETCHERS: readonly UrlFetcher[] = [httpFetcher, ftpFetcher, gsiftpFetcher];

export function fetcherOf(url: URL, fetchers: readonly UrlFetcher[] = FETCHERS): UrlFetcher | undefined {
  return fetchers.find(({ schemes }) => schemes.includes(schemeOf(url)));
}
