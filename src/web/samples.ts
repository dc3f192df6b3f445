import type { Gryphus, Totals } from '../index.ts';
import type { Hub } from './hub.ts';

/** Between two samples, milliseconds, and how many are kept: six hours. */
const EVERY_MS = 10_000;
const KEPT = 2160;

/** The queue at one moment. `at`: Unix seconds; `ended`, `started`: since the sample before. */
export interface Sample extends Pick<Totals, 'idle' | 'running' | 'held' | 'suspended'> {
  readonly at: number;
  readonly started: number;
  readonly ended: number;
  readonly failed: number;
}

/** What the hub's events counted since the server started. */
export interface Counters {
  submitted: number;
  started: number;
  completed: number;
  removed: number;
  held: number;
  failed: number;
  /** Seconds from the site's promise to run a job until it started, summed, and of how many jobs. */
  waitSum: number;
  waits: number;
}

/** Counts events, and samples the queue's counters. */
export class Samples {
  readonly counters: Counters = {
    submitted: 0,
    started: 0,
    completed: 0,
    removed: 0,
    held: 0,
    failed: 0,
    waitSum: 0,
    waits: 0,
  };
  readonly #gryphus: Gryphus;
  readonly #stop: () => void;
  readonly #timer: NodeJS.Timeout;
  readonly #committed = new Map<string, number>();
  #before: Counters;
  #all: Sample[] = [];

  constructor(gryphus: Gryphus, hub: Hub) {
    this.#gryphus = gryphus;
    this.#before = { ...this.counters };
    this.#stop = hub.listen((events) => {
      for (const event of events) {
        if (event.type === 'submitted') for (const [from, to] of event.procs) this.counters.submitted += to - from;
        if (event.type === 'transition') this.#step(event.job, event.to, event.from, event.at, event.set);
      }
    });
    this.#timer = setInterval(() => void this.sample().catch(() => undefined), EVERY_MS);
  }

  close(): void {
    this.#stop();
    clearInterval(this.#timer);
  }

  /** Those later than this, in Unix seconds, oldest first. */
  after(at: number): Sample[] {
    return this.#all.slice(this.#all.findLastIndex((sample) => sample.at <= at) + 1);
  }

  async sample(): Promise<Sample> {
    const { idle, running, held, suspended } = await this.#gryphus.totals();
    const { started, completed, removed, failed } = this.counters;
    const sample = {
      at: Math.round(Date.now() / 1000),
      idle,
      running,
      held,
      suspended,
      started: started - this.#before.started,
      ended: completed + removed - this.#before.completed - this.#before.removed,
      failed: failed - this.#before.failed,
    };
    this.#before = { ...this.counters };
    this.#all = [...this.#all, sample].slice(-KEPT);
    return sample;
  }

  #step(job: string, to: string, from: string, at: number, set: Readonly<Record<string, string | null>>): void {
    const { counters } = this;
    if (to === 'committed' && from !== 'committed') this.#committed.set(job, at);
    if (to === 'running' && from !== 'running' && from !== 'suspended') {
      counters.started += 1;
      const since = this.#committed.get(job);
      if (since !== undefined) {
        counters.waits += 1;
        counters.waitSum += Math.max(0, at - since) / 1000;
      }
    }
    if (to === 'held' && from !== 'held') counters.held += 1;
    if (to === 'completed') counters.completed += 1;
    if (to === 'removed') counters.removed += 1;
    if (to === 'finished' && (set['ExitBySignal'] === 'true' || !['0', undefined, null].includes(set['ExitCode'])))
      counters.failed += 1;
    if (to !== 'committed') this.#committed.delete(job);
  }
}
