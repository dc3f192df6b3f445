import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RemoteRequest } from '../../io-proxy/remote-frames.ts';
import { CHIRP_PIECE, type HomeAnswer, type HomeRequest } from '../../site/chirp.ts';
import { type DirectReadsAt, STATUS_BYTES } from '../../site/remote-io.ts';
import { asErrno } from './answer-remote.ts';
import type { OpenRead } from './contents.ts';
import { listenAt } from '../../util/listen-at.ts';

/** How long a key lives by which nobody is connected; milliseconds. */
const UNUSED_MS = 60_000;
/** The most keys of running jobs. The oldest goes first, and its job's reads go through the central manager. */
const MOST_KEYS = 10_000;

/** What is known of an attempt and a file is believed so long, as by gryphus-remote-io; milliseconds. */
const BELIEVED_MS = 1000;
/** Memory that is kept for the next answers: pieces. */
const SPARE = 8;

/** By what the reads of one attempt are answered. */
export interface ReadsOf {
  /** Checks a read, and opens its file. */
  readonly open: (read: HomeRequest) => Promise<OpenRead>;
  /** Lets other work of the attempt, and of others, go on. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>;
}

interface Given {
  readonly secret: Buffer;
  readonly reads: ReadsOf;
  readonly links: Set<Duplex>;
  n: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Reads of running jobs with `want_remote_io` by connections of their workers with this process, so that the bytes are neither read nor
 * encrypted by the central manager. Only reads, and they are checked as if they had come the other way, once a second: a worker whose
 * attempt was given to another since gets an error then, and cannot change anything.
 */
export class DirectReads {
  readonly #path: string;
  readonly #given = new Map<string, Given>();
  readonly #spare: Buffer[] = [];
  #server: Server | undefined;
  #listening: Promise<() => void> | undefined;

  /** `path`: its socket, for workers on this machine. */
  constructor(path: string) {
    this.#path = path;
  }

  /** A key for the connections of an attempt's worker, and where they end. */
  async give(reads: ReadsOf): Promise<DirectReadsAt> {
    this.#listening ??= this.#listen();
    await this.#listening;
    const [name, secret] = [randomBytes(12).toString('hex'), randomBytes(32)];
    const given: Given = { secret, reads, links: new Set(), n: 0, timer: undefined };
    this.#given.set(name, given);
    this.#expire(name, given);
    const [oldest] = this.#given.keys();
    if (this.#given.size > MOST_KEYS && oldest !== undefined) this.#forget(oldest);
    return { name, secret: secret.toString('hex'), socket: this.#path };
  }

  /** Whether a connection from a site is for us; if so, it is answered. Of any other, nothing is taken. */
  async take(raw: Duplex): Promise<boolean> {
    const { isDirect } = await import('../../reverse-connection/direct.ts');
    if (!(await isDirect(raw))) return false;
    void this.#serve(raw);
    return true;
  }

  async close(): Promise<void> {
    for (const name of this.#given.keys()) this.#forget(name);
    this.#server?.close();
    await this.#listening?.then(
      (end) => end(),
      () => undefined,
    );
  }

  #listen(): Promise<() => void> {
    this.#server = createServer({ allowHalfOpen: false }, (raw) => void this.#serve(raw));
    return listenAt(this.#server, this.#path);
  }

  async #serve(raw: Duplex): Promise<void> {
    raw.on('error', () => undefined);
    try {
      const { acceptDirect } = await import('../../reverse-connection/direct.ts');
      const guest = await acceptDirect(raw, { keyOf: (name) => this.#given.get(name)?.secret });
      await this.#answer(guest.link, guest.worker);
    } catch {
      // A stranger, or a connection that was cut: whoever asked asks again by the other way.
    }
    raw.destroy();
  }

  async #answer(link: Duplex, name: string): Promise<void> {
    const given = this.#given.get(name);
    if (!given) return;
    const [{ Incoming }, { runRemoteSession }] = await Promise.all([
      import('../../io-proxy/incoming.ts'),
      import('../../io-proxy/remote-session.ts'),
    ]);
    clearTimeout(given.timer);
    given.links.add(link);
    link.on('error', () => undefined);
    const session = new Session(given.reads, `direct.${name}.${(given.n += 1)}`, this.#spare);
    try {
      await runRemoteSession({
        incoming: new Incoming(link),
        write: async (pieces) => {
          await written(link, pieces);
          session.written();
        },
        ask: (request) => session.answer(request),
      });
    } finally {
      link.destroy();
      session.end();
      given.links.delete(link);
      if (given.links.size === 0) this.#expire(name, given);
    }
  }

  #expire(name: string, given: Given): void {
    clearTimeout(given.timer);
    given.timer = setTimeout(() => this.#forget(name), UNUSED_MS);
    given.timer.unref();
  }

  #forget(name: string): void {
    const given = this.#given.get(name);
    if (!given) return;
    this.#given.delete(name);
    clearTimeout(given.timer);
    for (const link of given.links) link.destroy();
  }
}

/** The reads of one connection, one after another. The file of the last stays open for a moment. */
class Session {
  readonly #reads: ReadsOf;
  readonly #name: string;
  readonly #spare: Buffer[];
  #file: { readonly of: string; readonly open: OpenRead; readonly until: number } | undefined;
  #bytes: Buffer | undefined;

  constructor(reads: ReadsOf, name: string, spare: Buffer[]) {
    this.#reads = reads;
    this.#name = name;
    this.#spare = spare;
  }

  /** The bytes of the answer are good until `written`. */
  async answer({ call, words, numbers, n }: RemoteRequest): Promise<HomeAnswer> {
    if (call !== 'read') throw new Error('only reads are answered here');
    try {
      return await this.#reads.inTurn(async () => {
        const of = JSON.stringify([words[0], numbers[2]]);
        if (this.#file?.of !== of || this.#file.until < performance.now()) {
          this.#close();
          const request = {
            op: 'remote_io',
            words: [call, ...words],
            numbers: [...numbers],
            session: this.#name,
            n,
          } as const;
          const open = await this.#reads.open({ ...request, again: false });
          this.#file = { of, open, until: performance.now() + BELIEVED_MS };
        }
        return this.#file.open.read(numbers[0] ?? 0, numbers[1] ?? 0, (bytes) => this.#memory(bytes));
      });
    } catch (thrown) {
      return asErrno(thrown);
    }
  }

  /** The last answer has left. */
  written(): void {
    if (this.#bytes && this.#spare.length < SPARE) this.#spare.push(this.#bytes);
    this.#bytes = undefined;
  }

  end(): void {
    this.#close();
  }

  #close(): void {
    this.#file?.open.close();
    this.#file = undefined;
  }

  #memory(bytes: number): Buffer {
    this.#bytes = this.#spare.pop() ?? Buffer.allocUnsafeSlow(STATUS_BYTES + CHIRP_PIECE);
    return this.#bytes.subarray(0, bytes);
  }
}

/** Resolves when the bytes are needed no more. Rejects if the connection is cut. */
function written(link: Duplex, pieces: readonly Uint8Array[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = (error?: Error | null): void => {
      link.off('close', cut);
      if (error) reject(error);
      else resolve();
    };
    // A channel of ssh that is closed forgets what waits in it.
    const cut = () => over(new Error('the connection was cut'));
    link.once('close', cut);
    link.cork();
    for (const bytes of pieces.slice(0, -1)) link.write(bytes);
    link.write(pieces.at(-1), over);
    link.uncork();
  });
}
