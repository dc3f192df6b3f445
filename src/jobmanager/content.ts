import { setTimeout as delay } from 'node:timers/promises';
import type { Blob, Outcome, Sending } from '../site/contract.ts';

/** How many large transfers run at once, so that a small file need not wait for a huge one. */
const AT_ONCE = 2;
/** After this time without being asked for, a failure says nothing about the present; milliseconds. */
const STALE_MS = 30_000;
/** The interval of progress reports, in milliseconds. */
const TELL_MS = 1000;

export interface ContentOptions {
  /** Sends one blob; resolves with an outcome if the site refuses it. Rejects if the site cannot be reached. */
  readonly carry: (
    blob: Blob,
    options: { readonly signal: AbortSignal; readonly onProgress: (done: number) => void },
  ) => Promise<Outcome | undefined>;
  /** How long a caller waits for what it needs, in milliseconds; the transfer continues afterwards. */
  readonly patience: number;
  /** Called with the current transfers and their progress. */
  readonly tell: (all: readonly Sending[]) => void;
}

type End = { readonly refused: Outcome } | { readonly thrown: unknown; readonly at: number };

interface Coming {
  readonly blob: Blob;
  readonly since: number;
  done: number;
  /** Undefined before its first bytes. */
  resumed: number | undefined;
  /** Undefined while the transfer runs. */
  end: End | undefined;
  readonly over: Promise<void>;
}

/**
 * Large content on its way to one site: each blob once, the smallest first, while other requests to the site continue.
 */
export class Content {
  readonly #options: ContentOptions;
  readonly #coming = new Map<string, Coming>();
  readonly #waiting: { readonly bytes: number; readonly go: () => void }[] = [];
  readonly #stop = new AbortController();
  #running = 0;
  #reportedAt = 0;

  constructor(options: ContentOptions) {
    this.#options = options;
  }

  /** Starts the transfers that are not running yet, and waits a while for all. */
  async send(blobs: readonly Blob[]): Promise<void> {
    const over = Promise.all(blobs.map((blob) => this.#begin(blob).over));
    if (!Number.isFinite(this.#options.patience)) await over;
    else await Promise.race([over, delay(this.#options.patience)]);
  }

  /**
   * The state of a transfer: `coming`, or its refusal, which is reported once before the next try. Undefined: it has
   * arrived, or was never sent. Throws what stopped the transfer.
   */
  look(sha256: string): { readonly is: 'coming'; readonly blob: Blob } | Outcome | undefined {
    const found = this.#coming.get(sha256);
    if (found === undefined) return undefined;
    if (found.end === undefined) return { is: 'coming', blob: found.blob };
    this.#coming.delete(sha256);
    if ('refused' in found.end) return found.end.refused;
    if (performance.now() - found.end.at > STALE_MS) return undefined;
    throw found.end.thrown;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    for (const { go } of this.#waiting.splice(0)) go();
    await Promise.all([...this.#coming.values()].map(({ over }) => over));
  }

  #begin(blob: Blob): Coming {
    const known = this.#coming.get(blob.sha256);
    if (known) return known;
    const coming: Coming = {
      blob,
      since: Date.now(),
      done: 0,
      resumed: undefined,
      end: undefined,
      over: this.#carry(blob),
    };
    this.#coming.set(blob.sha256, coming);
    return coming;
  }

  async #carry(blob: Blob): Promise<void> {
    let end: End | undefined;
    try {
      await this.#turn(blob.bytes);
      try {
        const refused = await this.#options.carry(blob, {
          signal: this.#stop.signal,
          onProgress: (done) => this.#progress(blob.sha256, done),
        });
        if (refused) end = { refused };
      } finally {
        this.#running -= 1;
        this.#next();
      }
    } catch (thrown) {
      end = { thrown, at: performance.now() };
    }
    const coming = this.#coming.get(blob.sha256);
    if (coming && end) coming.end = end;
    else this.#coming.delete(blob.sha256);
    this.#tell();
  }

  async #turn(bytes: number): Promise<void> {
    await new Promise<void>((go) => {
      this.#waiting.push({ bytes, go });
      this.#waiting.sort((a, b) => a.bytes - b.bytes);
      this.#next();
    });
  }

  #next(): void {
    while (this.#running < AT_ONCE && this.#waiting.length > 0) {
      this.#running += 1;
      this.#waiting.shift()?.go();
    }
  }

  #progress(sha256: string, done: number): void {
    const coming = this.#coming.get(sha256);
    if (!coming) return;
    coming.resumed ??= done;
    coming.done = done;
    if (performance.now() - this.#reportedAt >= TELL_MS) this.#tell();
  }

  #tell(): void {
    this.#reportedAt = performance.now();
    const all = [...this.#coming.values()].filter(({ end }) => end === undefined);
    this.#options.tell(
      all.map(({ blob, done, resumed = done, since }) => ({
        path: blob.path,
        bytes: blob.bytes,
        done,
        resumed,
        since,
      })),
    );
  }
}
