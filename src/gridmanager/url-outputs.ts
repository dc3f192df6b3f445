import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import { fetcherOf } from '../staging/url/fetchers.ts';
import { parseFileUrl } from '../staging/url/file-url.ts';
import type { UrlFetcher, UrlOptions } from '../staging/url/contract.ts';
import type { UrlAccess } from './url-access.ts';

const AT_ONCE = 4;
/** After this time without an answer the job is held and its results are kept; milliseconds. */
const PATIENCE_MS = 10 * 60_000;

/** Uploads results to the user's URLs. Nothing is uploaded twice in the lifetime of this process. */
export class UrlOutputs {
  readonly #access: UrlAccess;
  readonly #now: () => number;
  readonly #stored = new Map<AttemptKey, Set<string>>();
  readonly #failingSince = new Map<AttemptKey, number>();
  readonly #waiting: (() => void)[] = [];
  readonly #stop = new AbortController();
  #running = 0;

  constructor(access: UrlAccess, now: () => number) {
    this.#access = access;
    this.#now = now;
  }

  /**
   * Uploads one file. Rejects with 'output-unwritable', 'bad-input' or 'url-unreachable'; the message is one sentence.
   */
  async store(key: AttemptKey, from: string, text: string, proxyFile: string | undefined): Promise<void> {
    if (this.has(key, text)) return;
    await this.put(from, text, proxyFile);
    this.note(key, text);
    this.#failingSince.delete(key);
  }

  /** Uploads one file, also if it was uploaded before. Rejects as `store` does. */
  async put(from: string, text: string, proxyFile: string | undefined): Promise<void> {
    await this.#with(text, proxyFile, async (fetcher, url, options) => {
      if (!fetcher.store) throw new GryphusError('output-unwritable', `Outputs cannot be written to ${text}.`);
      await fetcher.store(from, url, options);
    });
  }

  /** Removes what was uploaded before. Rejects as `store` does. */
  async remove(text: string, what: 'file' | 'directory', proxyFile: string | undefined): Promise<void> {
    await this.#with(text, proxyFile, async (fetcher, url, options) => fetcher.remove?.(url, what, options));
  }

  async #with(
    text: string,
    proxyFile: string | undefined,
    work: (fetcher: UrlFetcher, url: URL, options: UrlOptions) => Promise<void>,
  ): Promise<void> {
    const url = parseFileUrl(text, this.#access.schemes);
    const fetcher = fetcherOf(url, this.#access.fetchers);
    if (!fetcher) throw new GryphusError('output-unwritable', `Outputs cannot be written to ${text}.`);
    await this.#place();
    try {
      const options = await this.#access.optionsFor(url, proxyFile);
      await work(fetcher, url, { ...options, signal: this.#stop.signal });
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }

  has(key: AttemptKey, text: string): boolean {
    return this.#stored.get(key)?.has(text) === true;
  }

  /** Records an upload, by us or by the site. */
  note(key: AttemptKey, text: string): void {
    this.#stored.set(key, (this.#stored.get(key) ?? new Set()).add(text));
  }

  /** Whether to retry later: an unreachable server is retried for PATIENCE_MS before the job is held. */
  mayComeLater(key: AttemptKey, error: GryphusError): boolean {
    if (error.code !== 'url-unreachable') return false;
    const since = this.#failingSince.get(key) ?? this.#now();
    this.#failingSince.set(key, since);
    if (this.#now() - since <= PATIENCE_MS) return true;
    this.#failingSince.delete(key);
    return false;
  }

  /** The attempt is done; forgets its uploads. */
  drop(key: AttemptKey): void {
    this.#stored.delete(key);
    this.#failingSince.delete(key);
  }

  close(): void {
    this.#stop.abort();
  }

  async #place(): Promise<void> {
    while (this.#running >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running += 1;
  }
}
