import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { asError, GryphusError } from '../errors.ts';
import { fetcherOf } from '../staging/url/fetchers.ts';
import { parseFileUrl } from '../staging/url/file-url.ts';
import type { UrlAccess } from './url-access.ts';

/**
 * Fetched content is trusted for this time, milliseconds. After that the server is asked again, and sends it only if it
 * has changed.
 */
const BELIEVED_MS = 60_000;
/** Wait before a server that does not answer is asked again, doubled each time; milliseconds. */
const FIRST_WAIT_MS = 2000;
const LONGEST_WAIT_MS = 60_000;
/** After this time without an answer the jobs are held; milliseconds. */
const PATIENCE_MS = 10 * 60_000;
/** Content that no job has asked for in this time is deleted; milliseconds. */
const KEPT_MS = 24 * 3600_000;
const AT_ONCE = 4;
/** A fetch that no job has asked for in this time is stopped; jobs that wait ask every few seconds. Milliseconds. */
const UNWANTED_MS = 60_000;

export type UrlInput =
  | { readonly is: 'here'; readonly path: string }
  | { readonly is: 'coming'; readonly why: string }
  | { readonly is: 'refused'; readonly error: GryphusError };

interface Known {
  readonly url: string;
  readonly proxyFile: string | undefined;
  /** Set while it is being fetched. */
  running: AbortController | undefined;
  /** When a job last asked for it, by the monotonic clock. */
  askedAt: number;
  path: string | undefined;
  version: string | undefined;
  /** Time of the last success, Unix milliseconds. */
  at: number;
  /** Set while there have been only failures since the last success. */
  failing: { readonly since: number; tries: number; next: number; error: GryphusError } | undefined;
  readonly wakers: Set<() => void>;
}

/**
 * Inputs that are URLs, fetched once for all jobs of this manager. A job waits only for its own inputs. Downloads
 * interrupted by a crash are resumed.
 */
export class UrlInputs {
  readonly #dir: string;
  readonly #access: UrlAccess;
  readonly #now: () => number;
  readonly #known = new Map<string, Known>();
  readonly #stop = new AbortController();
  readonly #unwantedMs: number;
  #running = 0;
  #swept: Promise<void> | undefined;

  /** `dir`: used by this manager only. */
  constructor(dir: string, access: UrlAccess, now: () => number, unwantedMs = UNWANTED_MS) {
    this.#unwantedMs = unwantedMs;
    this.#dir = dir;
    this.#access = access;
    this.#now = now;
  }

  /**
   * Looks up the content of a URL. If it is not here yet, it is fetched, and `wake` is called when the fetch has ended.
   */
  look(url: string, proxyFile: string | undefined, wake: () => void): UrlInput {
    const name = createHash('sha256')
      .update(JSON.stringify([url, proxyFile]))
      .digest('hex')
      .slice(0, 32);
    const known: Known = this.#known.get(name) ?? {
      url,
      proxyFile,
      running: undefined,
      askedAt: 0,
      path: undefined,
      version: undefined,
      at: Number.NEGATIVE_INFINITY,
      failing: undefined,
      wakers: new Set(),
    };
    this.#known.set(name, known);
    known.askedAt = performance.now();
    const now = this.#now();
    if (known.path !== undefined && Math.abs(now - known.at) < BELIEVED_MS) return { is: 'here', path: known.path };
    const { failing } = known;
    if (!known.running && failing && isFinal(failing, now)) {
      this.#known.delete(name);
      return { is: 'refused', error: failing.error };
    }
    known.wakers.add(wake);
    if (!known.running && this.#running < AT_ONCE && (failing === undefined || failing.next <= now)) {
      void this.#bring(name, known);
    }
    return { is: 'coming', why: failing ? failing.error.message : `${url} is being fetched` };
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#swept;
  }

  async #bring(name: string, known: Known): Promise<void> {
    const stop = new AbortController();
    known.running = stop;
    this.#running += 1;
    const timer = setInterval(() => {
      if (performance.now() - known.askedAt > this.#unwantedMs) stop.abort();
    }, this.#unwantedMs / 4);
    try {
      await (this.#swept ??= this.#sweep());
      const { schemes, fetchers } = this.#access;
      const url = parseFileUrl(known.url, schemes);
      const fetcher = fetcherOf(url, fetchers);
      if (!fetcher) throw new GryphusError('bad-input', `Unsupported URL scheme: ${known.url}.`);
      const whole = join(this.#dir, name);
      const { version, same } = await fetcher.fetch(url, whole, {
        ...(await this.#access.optionsFor(url, known.proxyFile)),
        ...(known.path !== undefined && known.version !== undefined ? { have: known.version } : {}),
        signal: AbortSignal.any([this.#stop.signal, stop.signal]),
      });
      if (!same) {
        // Every version gets a name of its own, so that it does not change while it is being sent for another job.
        known.path = `${whole}.${randomUUID()}`;
        await rename(whole, known.path);
      } else if (known.path !== undefined) await utimes(known.path, new Date(), new Date());
      known.version = version;
      known.at = this.#now();
      known.failing = undefined;
    } catch (thrown) {
      // What came is continued when it is asked for again.
      if (stop.signal.aborted) this.#known.delete(name);
      else known.failing = this.#failure(known, asError(thrown));
    } finally {
      clearInterval(timer);
      known.running = undefined;
      this.#running -= 1;
    }
    if (this.#stop.signal.aborted) return;
    for (const wake of known.wakers) wake();
    known.wakers.clear();
    this.#startOthers();
  }

  #startOthers(): void {
    for (const [name, other] of this.#known) {
      if (this.#running >= AT_ONCE) return;
      if (!other.running && other.wakers.size > 0 && other.failing === undefined) void this.#bring(name, other);
    }
  }

  #failure(known: Known, error: Error): NonNullable<Known['failing']> {
    const failure =
      error instanceof GryphusError ? error : new GryphusError('input-missing', `${known.url}: ${error.message}.`);
    const now = this.#now();
    const { since = now, tries = 0 } = known.failing ?? {};
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** tries);
    return { since, tries: tries + 1, next: now + wait, error: failure };
  }

  async #sweep(): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#dir)) {
      const path = join(this.#dir, name);
      const seen = await stat(path).catch(() => undefined);
      // Complete files of an earlier process are deleted, because their version is not known; partial ones are resumed.
      const old = seen === undefined || this.#now() - seen.mtimeMs > KEPT_MS;
      if (old || !/\.part(-of)?$/.test(name)) await rm(path, { force: true });
    }
  }
}

function isFinal({ error, since }: NonNullable<Known['failing']>, now: number): boolean {
  return error.retry !== 'later' || now - since > PATIENCE_MS;
}
