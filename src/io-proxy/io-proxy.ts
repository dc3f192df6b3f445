import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { CHIRP_ERROR } from '../site/chirp.ts';
import { readChirpLine } from './chirp-line.ts';
import { endSoon } from './end-soon.ts';
import { Incoming } from './incoming.ts';
import { type AskingJob, JobProxy } from './job-proxy.ts';
import { digestOf, LoopbackPort } from './loopback-port.ts';

/** How long the answer to a wrong cookie takes, milliseconds. */
const WRONG_MS = 1000;

/** The proxies of running jobs: one port of the loopback interface, on which a job is known by its cookie. */
export class IoProxy {
  /** By the cookie's digest. */
  readonly #jobs = new Map<string, JobProxy>();
  readonly #port = new LoopbackPort((socket, known) => void this.#greet(socket, known));

  /** Must have resolved before a job is opened. */
  listen(): Promise<void> {
    return this.#port.listen();
  }

  /** From now on the job's processes can send requests to its home. */
  open(job: AskingJob): JobProxy {
    const proxy = new JobProxy(job);
    proxy.announce(this.#port.number);
    this.#jobs.set(digestOf(proxy.cookie), proxy);
    return proxy;
  }

  /** When a job has ended: resolves when home knows all that it said. */
  end(proxy: JobProxy): Promise<void> {
    return proxy.close().finally(() => this.#jobs.delete(digestOf(proxy.cookie)));
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

  async #shown(socket: Socket, incoming: Incoming): Promise<JobProxy | undefined> {
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
