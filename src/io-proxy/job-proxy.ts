import { randomBytes } from 'node:crypto';
import { closeSync, fchownSync, lstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { AttrTexts } from '../job/attrs.ts';
import { CHIRP_CONFIG, type HomeAnswer, type HomeRequest } from '../site/chirp.ts';
import { REMOTE_OFFLINE } from '../site/remote-io.ts';
import { ChirpSession, writeTo } from './chirp-session.ts';
import { type DialDirect, DirectReads } from './direct-reads.ts';
import { DelayedAttributes } from './delayed.ts';
import { endSoon, LINGER_MS } from './end-soon.ts';
import type { Incoming } from './incoming.ts';
import { runRemoteSession } from './remote-session.ts';

/** A request that is sent to a job's home until there is an answer. `again`: the job itself has sent it before. */
export type Question = Omit<HomeRequest, 'again'> & { readonly again?: boolean };

/** A running job that may ask its home. */
export interface AskingJob {
  /** Its own directory. */
  readonly work: string;
  /** Whose its processes are, if not ours. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** Its ad, as it was when it started. */
  readonly ad: AttrTexts;
  /** Whether it has `want_remote_io`. */
  readonly remoteIo: boolean;
  /** If its reads can go by connections of their own. */
  readonly dialDirect?: DialDirect | undefined;
  /** Waits while home is away, and answers `offline` (default: the error of Chirp) when it has waited long enough. */
  readonly ask: (question: Question, bytes?: Uint8Array, offline?: number) => Promise<HomeAnswer>;
}

/** HTCondor sends delayed updates every 15 minutes at the latest. Milliseconds. */
const DELAY_MS = 300_000;
const MOST_SESSIONS = 64;

/** The proxy of one running job: its cookie, its connections, and what it has not told its home yet. */
export class JobProxy {
  readonly cookie = randomBytes(24).toString('hex');
  readonly #job: AskingJob;
  readonly #delayed: DelayedAttributes;
  readonly #sessions = new Map<Socket, Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  /** How many requests were sent under each name of a connection. A name is used again, so that home remembers few. */
  readonly #sent = new Map<string, number>();
  readonly #freeNames = Array.from({ length: MOST_SESSIONS }, (_, i) => `${this.cookie.slice(0, 8)}.${i}`);
  readonly #direct: DirectReads | undefined;
  #given = false;

  constructor(job: AskingJob) {
    this.#job = job;
    this.#direct = job.dialDirect && new DirectReads(job.dialDirect);
    const ad = new Map(Object.entries(job.ad).map(([name, text]) => [name.toLowerCase(), text ?? undefined]));
    this.#delayed = new DelayedAttributes((name) => ad.get(name.toLowerCase()));
    this.#timer = setInterval(() => void this.#tellDelayed(), DELAY_MS);
    this.#timer.unref();
  }

  /** Writes where it listens, and the cookie, into the job's sandbox, for the job's account only. */
  announce(port: number): void {
    const { work, user } = this.#job;
    const path = join(work, CHIRP_CONFIG);
    // It is made anew: what the job may have put in its place is neither followed nor, if it is a directory, walked.
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory())
      renameSync(path, `${path}.${this.cookie.slice(0, 8)}`);
    rmSync(path, { force: true });
    const fd = openSync(path, 'wx', 0o600);
    try {
      writeSync(fd, `127.0.0.1 ${port} ${this.cookie}\n`);
      if (user) fchownSync(fd, user.uid, user.gid);
    } finally {
      closeSync(fd);
    }
  }

  /** A connection that has shown the cookie; false if there are too many. */
  serve(socket: Socket, incoming: Incoming): boolean {
    const name = this.#given ? undefined : this.#freeNames.pop();
    if (name === undefined) return false;
    const session = new ChirpSession({
      socket,
      incoming,
      delayed: this.#delayed,
      ask: (op, words, numbers, bytes) =>
        this.#job.ask({ op, words: [...words], numbers: [...numbers], session: name, n: this.#next(name) }, bytes),
      remote: this.#job.remoteIo ? (given) => this.#remote(socket, incoming, given) : undefined,
    });
    const done = session
      .run()
      .catch(() => undefined)
      .finally(() => {
        this.#sessions.delete(socket);
        this.#freeNames.push(name);
        endSoon(socket);
      });
    this.#sessions.set(socket, done);
    return true;
  }

  /** Its requests have their own names and numbers, which survive this process. */
  #remote(socket: Socket, incoming: Incoming, name: string): Promise<void> {
    const write = (pieces: readonly Uint8Array[]) => writeTo(socket, ...pieces);
    const direct = this.#direct?.session(write);
    return runRemoteSession({
      incoming,
      write,
      ...(direct && { direct: direct.read }),
      ask: ({ call, words, numbers, bytes, n, again }) =>
        this.#job.ask(
          { op: 'remote_io', words: [call, ...words], numbers: [...numbers], session: `remote.${name}`, n, again },
          bytes,
          REMOTE_OFFLINE,
        ),
    }).finally(direct?.end);
  }

  /** The worker's connection with home was cut. */
  cut(): void {
    this.#direct?.cut();
  }

  /** The job has ended. Resolves when home knows all that it said. */
  async close(): Promise<void> {
    if (this.#given) return;
    this.#given = true;
    clearInterval(this.#timer);
    const late = setTimeout(() => {
      // Its processes are gone, so what they sent has arrived; a connection that is still open belongs to another. What was
      // read of it is still done, but nobody reads the answers.
      for (const socket of this.#sessions.keys()) socket.destroy();
    }, LINGER_MS);
    await Promise.all(this.#sessions.values());
    clearTimeout(late);
    await this.#tellDelayed();
  }

  async #tellDelayed(): Promise<void> {
    const words = this.#delayed.take();
    if (words.length === 0) return;
    const session = `${this.cookie.slice(0, 8)}.delayed`;
    await this.#job.ask({ op: 'set_job_attrs_delayed', words, numbers: [], session, n: this.#next(session) });
  }

  #next(session: string): number {
    const n = (this.#sent.get(session) ?? 0) + 1;
    this.#sent.set(session, n);
    return n;
  }
}
