import type { Duplex } from 'node:stream';
import { writeTo } from './chirp-session.ts';
import { Incoming } from './incoming.ts';
import { REMOTE_HEAD } from './remote-frames.ts';

/** A job that has read so much gets connections of its own with home: a job that reads little is served sooner without; bytes. */
const WORTH = 4 << 20;
/** After a connection could not be made, or was cut, none is tried for so long; milliseconds. */
const REST_MS = 60_000;
/** How long home may take to go on with an answer; milliseconds. */
const SILENCE_MS = 60_000;
const ANSWER_HEAD = REMOTE_HEAD + 8;

/** Connects a job with the process that answers its reads. Rejects if there is no way. */
export type DialDirect = () => Promise<Duplex>;

/** The reads of one job by connections that bypass its worker's own with home, one for each connection of its gryphus-remote-io. */
export class DirectReads {
  readonly #dial: DialDirect;
  readonly #links = new Set<DirectLink>();
  #read = 0;
  #restUntil = Number.NEGATIVE_INFINITY;

  constructor(dial: DialDirect) {
    this.#dial = dial;
  }

  /** For one connection of the job: what `runRemoteSession` calls as `direct`, and what ends it. */
  session(write: (pieces: readonly Uint8Array[]) => Promise<void>): {
    readonly read: (request: readonly Uint8Array[], wanted: number) => Promise<boolean>;
    readonly end: () => void;
  } {
    let link: DirectLink | undefined;
    let over = false;
    let coming = false;
    const open = async (): Promise<void> => {
      try {
        const made = new DirectLink(await this.#dial(), () => this.#links.delete(made));
        this.#links.add(made);
        link = made;
        if (over) made.end();
      } catch {
        this.#rest();
      }
      coming = false;
    };
    return {
      read: async (request, wanted) => {
        if (link?.ended === false) {
          if (await link.pass(request, write)) return true;
          this.#rest();
          return false;
        }
        this.#read += wanted;
        if (this.#read < WORTH || coming || performance.now() < this.#restUntil) return false;
        coming = true;
        void open();
        return false;
      },
      end: () => {
        over = true;
        link?.end();
      },
    };
  }

  /** Home cannot be reached now: what is on its way does not come any more. */
  cut(): void {
    for (const link of this.#links) link.end();
  }

  #rest(): void {
    this.#restUntil = performance.now() + REST_MS;
  }
}

/** One such connection: requests go by it as the job sent them, and the bytes of answers as they come. */
class DirectLink {
  readonly #stream: Duplex;
  readonly #incoming: Incoming;
  ended = false;

  constructor(stream: Duplex, onEnd: () => void) {
    this.#stream = stream;
    this.#incoming = new Incoming(stream);
    stream.on('error', () => undefined);
    stream.once('close', () => {
      this.ended = true;
      onEnd();
    });
  }

  /** False if no answer began. Rejects if it was cut off, so that what was written is not whole. */
  async pass(
    request: readonly Uint8Array[],
    write: (pieces: readonly Uint8Array[]) => Promise<void>,
  ): Promise<boolean> {
    const late = setTimeout(() => this.end(), SILENCE_MS);
    try {
      await writeTo(this.#stream, ...request);
      const head = await this.#incoming.bytes(ANSWER_HEAD);
      if (head.length < ANSWER_HEAD) {
        this.end();
        return false;
      }
      let pieces: readonly Uint8Array[] = [head];
      for (let missing = head.readUInt32LE(0) + REMOTE_HEAD - ANSWER_HEAD; missing > 0; ) {
        const part = await this.#incoming.some(missing);
        if (part.length === 0) throw new Error('an answer of home was cut off');
        missing -= part.length;
        await write([...pieces, part]);
        pieces = [];
        late.refresh();
      }
      if (pieces.length > 0) await write(pieces);
      return true;
    } finally {
      clearTimeout(late);
    }
  }

  end(): void {
    this.ended = true;
    this.#stream.destroy();
  }
}
