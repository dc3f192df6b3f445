import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { CHIRP_ERROR, type HomeOp } from '../../../site/chirp.ts';
import { digestOf, LoopbackPort } from '../loopback-port.ts';
import type { Run } from '../run.ts';
import { type AskHome, askUntil } from './ask-until.ts';
import { endSoon } from './end-soon.ts';
import { Incoming } from './incoming.ts';
import { JobChirp } from './job-chirp.ts';
import { readChirpLine } from './line.ts';

/** How long the answer to a wrong cookie takes, milliseconds. */
const WRONG_MS = 1000;

/**
 * The proxies of running jobs (HTCondor's IO proxy, `want_io_proxy`): one port of the loopback interface, on which a
 * job is known by its cookie.
 */
export class ChirpProxies {
  readonly #ask: AskHome;
  /** By the cookie's digest. */
  readonly #jobs = new Map<string, JobChirp>();
  readonly #runs = new Map<Run, JobChirp>();
  readonly #port = new LoopbackPort((socket, known) => void this.#greet(socket, known));
  #told = 0;

  constructor(ask: AskHome) {
    this.#ask = ask;
  }

  /** Must have resolved before a run is opened. */
  listen(): Promise<void> {
    return this.#port.listen();
  }

  /** From now on the run's processes can send requests to its home. */
  open(run: Run): void {
    const job = new JobChirp(run, this.#ask);
    job.announce(this.#port.number);
    this.#runs.set(run, job);
    this.#jobs.set(digestOf(job.cookie), job);
  }

  /** When a run has ended: resolves when home knows all that it said. `undefined` if there is nothing to wait for. */
  end(run: Run): Promise<void> | undefined {
    const job = this.#runs.get(run);
    if (!job) return undefined;
    this.#runs.delete(run);
    return job.close().finally(() => this.#jobs.delete(digestOf(job.cookie)));
  }

  /** Tells a run's home something that the worker knows. Resolves when home has heard it, or the run's lease is over. */
  async tell(run: Run, op: HomeOp, words: string[], numbers: number[]): Promise<void> {
    const session = `worker.${process.pid}.${++this.#told}`;
    await askUntil(this.#ask, run, { op, words, numbers, session, n: 1 });
  }

  close(): void {
    this.#port.close();
  }

  /** The first lines of a connection: it has to show a cookie. */
  async #greet(socket: Socket, known: () => void): Promise<void> {
    const incoming = new Incoming(socket);
    const job = await this.#shown(socket, incoming);
    known();
    if (!job?.serve(socket, incoming)) endSoon(socket);
    else socket.write('0\n');
  }

  async #shown(socket: Socket, incoming: Incoming): Promise<JobChirp | undefined> {
    for (;;) {
      const line = await incoming.line();
      if (line === undefined || line === 'too long') return undefined;
      const request = readChirpLine(line);
      const shown = request?.verb === 'cookie' ? request.words[0] : undefined;
      const job = shown === undefined ? undefined : this.#jobs.get(digestOf(shown));
      if (job) return job;
      if (shown !== undefined) await sleep(WRONG_MS);
      if (socket.destroyed) return undefined;
      socket.write(`${CHIRP_ERROR.notAuthenticated}\n`);
    }
  }
}
