import { setTimeout as delay } from 'node:timers/promises';
import type { Blob, Outcome, Sending } from '../site/contract.ts';

/** Large content on its way at once: a small one need not wait for the end of a huge one. */
const AT_ONCE = 2;
/** A failure that nobody asked about for so long says nothing of now, milliseconds. */
const STALE_MS = 30_000;
/** How often it is told how far they are, milliseconds. */
const TELL_MS = 1000;

export interface ContentOptions {
  /** Carries one there; its outcome where the site would not have it. Rejects where the site cannot be talked to. */
  readonly carry: (
    blob: Blob,
    options: { readonly signal: AbortSignal; readonly onProgress: (done: number) => void },
  ) => Promise<Outcome | undefined>;
  /** A caller waits for what he needs so long, milliseconds; it comes on without him. */
  readonly patience: number;
  /** Told what is on its way now, and how far. */
  readonly tell: (all: readonly Sending[]) => void;
}

type End = { readonly refused: Outcome } | { readonly thrown: unknown; readonly at: number };

interface Coming {
  readonly blob: Blob;
  readonly since: number;
  done: number;
  /** Undefined before its first bytes. */
  resumed: number | undefined;
  /** Undefined while it comes. */
  end: End | undefined;
  readonly over: Promise<void>;
}

/** Large content on its way to one site, each once, the smallest first, while the site is asked other things. */
export class Content {
  readonly #options: ContentOptions;
  readonly #coming = new Map<string, Coming>();
  readonly #waiting: { readonly bytes: number; readonly go: () => void }[] = [];
  readonly #stop = new AbortController();
  #running = 0;
  #toldAt = 0;

  constructor(options: ContentOptions) {
    this.#options = options;
  }

  /** Begins with those that are not on their way, and waits a while for all. */
  async send(blobs: readonly Blob[]): Promise<void> {
    const over = Promise.all(blobs.map((blob) => this.#begin(blob).over));
    if (!Number.isFinite(this.#options.patience)) await over;
    else await Promise.race([over, delay(this.#options.patience)]);
  }

  /**
   * How it stands with what was sent: `coming`, or the refusal that it met, which is told once and tried again after. Undefined:
   * it is there, or nobody has sent it. Throws what kept it from coming.
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
    if (performance.now() - this.#toldAt >= TELL_MS) this.#tell();
  }

  #tell(): void {
    this.#toldAt = performance.now();
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
