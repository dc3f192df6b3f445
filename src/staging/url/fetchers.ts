import type { UrlFetcher } from './contract.ts';
import { ftpFetcher } from './ftp.ts';
import { schemeOf } from './file-url.ts';
import { gsiftpFetcher } from './gsiftp.ts';
import { httpFetcher } from './http.ts';

/** Every way to access a URL. */
export const FETCHERS: readonly UrlFetcher[] = [httpFetcher, ftpFetcher, gsiftpFetcher];

export function fetcherOf(url: URL, fetchers: readonly UrlFetcher[] = FETCHERS): UrlFetcher | undefined {
  return fetchers.find(({ schemes }) => schemes.includes(schemeOf(url)));
}
