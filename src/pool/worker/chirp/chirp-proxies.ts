import { createHash } from 'node:crypto';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { CHIRP_ERROR, type HomeOp } from '../../../site/chirp.ts';
import type { Run } from '../run.ts';
import { type AskHome, askUntil } from './ask-until.ts';
import { endSoon } from './end-soon.ts';
import { Incoming } from './incoming.ts';
import { JobChirp } from './job-chirp.ts';
import { readChirpLine } from './line.ts';

/** How long a connection may take to show its cookie, and a wrong cookie is waited for; milliseconds. */
const COOKIE_MS = 10_000;
const WRONG_MS = 1000;
/** Connections that have not shown a cookie. Every user of the machine can open them; a job shows its cookie at once. */
const MOST_STRANGERS = 64;

/**
 * The proxies of running jobs (HTCondor's IO proxy, `want_io_proxy`): one port of the loopback interface, on which a
 * job is known by its cookie.
 */
export class ChirpProxies {
  readonly #ask: AskHome;
  /** By the cookie's digest, so that the time of a look-up tells nothing of it. */
  readonly #jobs = new Map<string, JobChirp>();
  readonly #runs = new Map<Run, JobChirp>();
  #listening: Promise<number> | undefined;
  #port = 0;
  #server: Server | undefined;
  /** In the order in which they came. */
  readonly #strangers = new Set<Socket>();
  #told = 0;

  constructor(ask: AskHome) {
    this.#ask = ask;
  }

  /** Must have resolved before a run is opened. */
  async listen(): Promise<void> {
    this.#listening ??= this.#open();
    this.#port = await this.#listening;
  }

  /** From now on the run's processes can send requests to its home. */
  open(run: Run): void {
    const job = new JobChirp(run, this.#ask);
    job.announce(this.#port);
    this.#runs.set(run, job);
    this.#jobs.set(digest(job.cookie), job);
  }

  /** When a run has ended: resolves when home knows all that it said. `undefined` if there is nothing to wait for. */
  end(run: Run): Promise<void> | undefined {
    const job = this.#runs.get(run);
    if (!job) return undefined;
    this.#runs.delete(run);
    return job.close().finally(() => this.#jobs.delete(digest(job.cookie)));
  }

  /** Tells a run's home something that the worker knows. Resolves when home has heard it, or the run's lease is over. */
  async tell(run: Run, op: HomeOp, words: string[], numbers: number[]): Promise<void> {
    const session = `worker.${process.pid}.${++this.#told}`;
    await askUntil(this.#ask, run, { op, words, numbers, session, n: 1 });
  }

  close(): void {
    this.#server?.close();
  }

  #open(): Promise<number> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => void this.#greet(socket));
    this.#server = server;
    server.unref();
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });
  }

  /** The first lines of a connection: it has to show a cookie. */
  async #greet(socket: Socket): Promise<void> {
    socket.on('error', () => undefined);
    const [oldest] = this.#strangers;
    if (this.#strangers.size >= MOST_STRANGERS) oldest?.destroy();
    this.#strangers.add(socket);
    socket.once('close', () => this.#strangers.delete(socket));
    const late = setTimeout(() => socket.destroy(), COOKIE_MS);
    const incoming = new Incoming(socket);
    const job = await this.#shown(socket, incoming);
    clearTimeout(late);
    this.#strangers.delete(socket);
    if (!job?.serve(socket, incoming)) endSoon(socket);
    else socket.write('0\n');
  }

  async #shown(socket: Socket, incoming: Incoming): Promise<JobChirp | undefined> {
    for (;;) {
      const line = await incoming.line();
      if (line === undefined || line === 'too long') return undefined;
      const request = readChirpLine(line);
      const shown = request?.verb === 'cookie' ? request.words[0] : undefined;
      const job = shown === undefined ? undefined : this.#jobs.get(digest(shown));
      if (job) return job;
      if (shown !== undefined) await sleep(WRONG_MS);
      if (socket.destroyed) return undefined;
      socket.write(`${CHIRP_ERROR.notAuthenticated}\n`);
    }
  }
}

function digest(cookie: string): string {
  return createHash('sha256').update(cookie).digest('hex');
}
