import { IoProxy } from '../../../io-proxy/io-proxy.ts';
import type { JobProxy } from '../../../io-proxy/job-proxy.ts';
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

  constructor(ask: AskHome) {
    this.#ask = ask;
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
      ask: (question, bytes, offline) => askUntil(this.#ask, run, question, bytes, offline),
    });
    this.#runs.set(run, job);
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
    const session = `worker.${process.pid}.${++this.#told}`;
    await askUntil(this.#ask, run, { op, words, numbers, session, n: 1 });
  }

  close(): void {
    this.#proxy.close();
  }
}
