import type { Duplex } from 'node:stream';
import { IoProxy } from '../../../io-proxy/io-proxy.ts';
import type { JobProxy } from '../../../io-proxy/job-proxy.ts';
import type { DirectDialling } from '../remote-io/direct-way.ts';
import type { HomeOp } from '../../../site/chirp.ts';
import { jobAdOf } from '../job-ad-of.ts';
import type { Run } from '../run.ts';
import { type AskHome, askUntil } from './ask-until.ts';

/** The proxies of a worker's running jobs (HTCondor's IO proxy, `want_io_proxy`). */
export class ChirpProxies {
  readonly #ask: AskHome;
  readonly #runs = new Map<Run, JobProxy>();
  readonly #proxy = new IoProxy();
  #told = 0;

  readonly #direct: DirectDialling | undefined;

  constructor(ask: AskHome, direct?: DirectDialling) {
    this.#ask = ask;
    this.#direct = direct;
  }

  /** Must have resolved before a run is opened. */
  listen(): Promise<void> {
    return this.#proxy.listen();
  }

  /** From now on the run's processes can send requests to its home. */
  open(run: Run): void {
    const job = this.#proxy.open({
      work: run.dir.work,
      user: run.record.user,
      ad: jobAdOf(run),
      remoteIo: run.record.spec.remoteIo === true,
      dialDirect: this.#direct && (() => this.#dialDirect(run)),
      ask: (question, bytes, offline) => askUntil(this.#ask, run, question, bytes, offline),
    });
    this.#runs.set(run, job);
  }

  async #dialDirect(run: Run): Promise<Duplex> {
    if (!this.#direct) throw new Error('there is no direct way');
    return this.#direct(
      await this.#ask(run, { op: 'remote_direct', words: [], numbers: [], ...this.#nextTurn(), again: false }),
    );
  }

  #nextTurn(): { readonly session: string; readonly n: number } {
    return { session: `worker.${process.pid}.${++this.#told}`, n: 1 };
  }

  /** The worker's connection with home was cut. */
  cut(): void {
    for (const job of this.#runs.values()) job.cut();
  }

  /** When a run has ended: resolves when home knows all that it said. `undefined` if there is nothing to wait for. */
  end(run: Run): Promise<void> | undefined {
    const job = this.#runs.get(run);
    if (!job) return undefined;
    this.#runs.delete(run);
    return this.#proxy.end(job);
  }

  /** Tells a run's home something that the worker knows. Resolves when home has heard it, or the run's lease is over. */
  async tell(run: Run, op: HomeOp, words: string[], numbers: number[]): Promise<void> {
    await askUntil(this.#ask, run, { op, words, numbers, ...this.#nextTurn() });
  }

  close(): void {
    this.#proxy.close();
  }
}
