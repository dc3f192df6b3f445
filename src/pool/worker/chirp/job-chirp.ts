import { randomBytes } from 'node:crypto';
import { closeSync, fchownSync, lstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { HomeAnswer, HomeOp, HomeRequest } from '../../../site/chirp.ts';
import { REMOTE_OFFLINE } from '../../../site/remote-io.ts';
import { CHIRP_CONFIG } from '../ad-files.ts';
import { jobAdOf } from '../job-ad-of.ts';
import type { Run } from '../run.ts';
import { type AskHome, askUntil } from './ask-until.ts';
import { DelayedAttributes } from './delayed.ts';
import { endSoon, LINGER_MS } from './end-soon.ts';
import type { Incoming } from './incoming.ts';
import { runRemoteSession } from '../remote-io/remote-session.ts';
import { ChirpSession, writeTo } from './session.ts';

/** HTCondor sends delayed updates every 15 minutes at the latest. Milliseconds. */
const DELAY_MS = 300_000;
const MOST_SESSIONS = 64;

/** The proxy of one running job: its cookie, its connections, and what it has not told its home yet. */
export class JobChirp {
  readonly cookie = randomBytes(24).toString('hex');
  readonly #run: Run;
  readonly #ask: AskHome;
  readonly #delayed: DelayedAttributes;
  readonly #sessions = new Map<Socket, Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  #opened = 0;
  #given = false;

  constructor(run: Run, ask: AskHome) {
    this.#run = run;
    this.#ask = ask;
    const ad = new Map(Object.entries(jobAdOf(run)).map(([name, text]) => [name.toLowerCase(), text ?? undefined]));
    this.#delayed = new DelayedAttributes((name) => ad.get(name.toLowerCase()));
    this.#timer = setInterval(() => void this.#tellDelayed(), DELAY_MS);
    this.#timer.unref();
  }

  /** Writes where it listens, and the cookie, into the job's sandbox, for the job's account only. */
  announce(port: number): void {
    const { dir, record } = this.#run;
    const path = join(dir.work, CHIRP_CONFIG);
    // It is made anew: what the job may have put in its place is neither followed nor, if it is a directory, walked.
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory())
      renameSync(path, `${path}.${this.cookie.slice(0, 8)}`);
    rmSync(path, { force: true });
    const fd = openSync(path, 'wx', 0o600);
    try {
      writeSync(fd, `127.0.0.1 ${port} ${this.cookie}\n`);
      if (record.user) fchownSync(fd, record.user.uid, record.user.gid);
    } finally {
      closeSync(fd);
    }
  }

  /** A connection that has shown the cookie; false if there are too many. */
  serve(socket: Socket, incoming: Incoming): boolean {
    if (this.#given || this.#sessions.size >= MOST_SESSIONS) return false;
    const name = `${this.cookie.slice(0, 8)}.${++this.#opened}`;
    let n = 0;
    const session = new ChirpSession({
      socket,
      incoming,
      delayed: this.#delayed,
      ask: (op, words, numbers, bytes) => this.#askUntil(op, words, numbers, bytes, { session: name, n: ++n }),
      remote: this.#run.record.spec.remoteIo === true ? (given) => this.#remote(socket, incoming, given) : undefined,
    });
    const done = session
      .run()
      .catch(() => undefined)
      .finally(() => {
        this.#sessions.delete(socket);
        endSoon(socket);
      });
    this.#sessions.set(socket, done);
    return true;
  }

  /** Its requests have their own names and numbers, which survive this worker. */
  #remote(socket: Socket, incoming: Incoming, name: string): Promise<void> {
    return runRemoteSession({
      incoming,
      write: (bytes) => writeTo(socket, bytes),
      ask: ({ call, words, numbers, bytes, n, again }) =>
        askUntil(
          this.#ask,
          this.#run,
          { op: 'remote_io', words: [call, ...words], numbers: [...numbers], session: `remote.${name}`, n, again },
          bytes,
          REMOTE_OFFLINE,
        ),
    });
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
    await this.#askUntil('set_job_attrs_delayed', words, [], undefined, {
      session: `${this.cookie.slice(0, 8)}.delayed`,
      n: Date.now(),
    });
  }

  #askUntil(
    op: HomeOp,
    words: readonly string[],
    numbers: readonly number[],
    bytes: Uint8Array | undefined,
    which: Pick<HomeRequest, 'session' | 'n'>,
  ): Promise<HomeAnswer> {
    return askUntil(this.#ask, this.#run, { op, words: [...words], numbers: [...numbers], ...which }, bytes);
  }
}
