/** One way to bring a file from a URL and, where it can be written to, to put one there. A new one is a file like ftp.ts and a line in fetchers.ts. */
export interface UrlFetcher {
  /** In lower case, without the colon. */
  readonly schemes: readonly string[];
  /**
   * Brings the whole content to the file `to` (absolute), which is there only when it is whole and was verified by all
   * that the server says of it. What an earlier call left half done (`part.ts`) is gone on with. Errors: 'input-missing'
   * where it will never come, 'url-unreachable' where it may come later.
   */
  fetch(url: URL, to: string, options: UrlOptions): Promise<Fetched>;
  /**
   * Puts the file `from` at the URL, over what is there. Errors: 'output-unwritable' where the server will never take it,
   * 'url-unreachable' where it may later. A way that only reads has no such method.
   */
  store?(from: string, url: URL, options: UrlOptions): Promise<void>;
}

export interface UrlOptions {
  readonly login?: Login;
  /** The job's X.509 proxy: an absolute path at home. */
  readonly proxyFile?: string;
  /** Certificate authorities to believe beside the system's, PEM. */
  readonly ca?: string;
  /** What we have of this URL: content of this version is not sent again. */
  readonly have?: string;
  readonly signal?: AbortSignal;
}

/** From a file of the user's, never from a URL. */
export interface Login {
  readonly user: string;
  readonly password: string;
}

export interface Fetched {
  /** What the server calls this content (entity tag, or size and time); `undefined`: it does not say. */
  readonly version: string | undefined;
  /** The server's content is what we have; nothing was written. */
  readonly same: boolean;
}
