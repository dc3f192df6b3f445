/**
 * A way to fetch a file from a URL and, if it can be written to, to store one there. A new way is a file like ftp.ts
 * and a line in fetchers.ts.
 */
export interface UrlFetcher {
  /** In lower case, without the colon. */
  readonly schemes: readonly string[];
  /**
   * Fetches the whole content into the file `to` (absolute), which exists only once it is complete and verified by
   * every means that the server offers. Continues what an earlier call left unfinished (`part.ts`). Errors:
   * 'input-missing' if it will never be available, 'url-unreachable' if it may be later.
   */
  fetch(url: URL, to: string, options: UrlOptions): Promise<Fetched>;
  /**
   * Stores the file `from` at the URL, replacing what is there; directories of its path that are not there are made. Errors: 'output-unwritable' if the server will never
   * take it, 'url-unreachable' if it may later. A read-only way lacks this method.
   */
  store?(from: string, url: URL, options: UrlOptions): Promise<void>;
  /** Removes a file, or a directory that is empty; one that is not there counts as removed. Errors: as for `store`. */
  remove?(url: URL, what: 'file' | 'directory', options: UrlOptions): Promise<void>;
}

export interface UrlOptions {
  readonly login?: Login;
  /** The job's X.509 proxy: an absolute path at home. */
  readonly proxyFile?: string;
  /** Certificate authorities (PEM) to trust in addition to the system's. */
  readonly ca?: string;
  /** The version that we have of this URL, whose content is not sent again. */
  readonly have?: string;
  readonly signal?: AbortSignal;
}

/** From a file of the user's, never from a URL. */
export interface Login {
  readonly user: string;
  readonly password: string;
}

export interface Fetched {
  /** The server's identifier for this content (entity tag, or size and time); `undefined` if it gives none. */
  readonly version: string | undefined;
  /** The server's content is the version that we have; nothing was written. */
  readonly same: boolean;
}
