import { GryphusError } from '../errors.ts';
import { Attrs } from '../job/attrs.ts';
import { storedOr } from '../util/stored-json.ts';
import { warn } from '../util/warn.ts';
import type { HistoryRecord } from './api.ts';
import { CLUSTER_LINE, isJobLine, type JobLine } from './history-file.ts';
import { type HistoryEntry, HistorySnapshot } from './history-snapshot.ts';
import { stateNamed } from './record.ts';

/** A line of a job; `undefined` if it is damaged. */
export function jobLine(text: string): JobLine | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJobLine(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the jobs of one file of the history, without those whose lines are damaged; `close` warns of these. */
export class HistoryReading {
  readonly snapshot: HistorySnapshot;
  readonly #path: string;
  /** Clusters' ads by the places of their lines; `undefined` if damaged. */
  readonly #ads = new Map<number, Attrs | undefined>();
  /** Places of damaged lines, bytes. */
  readonly #damaged = new Set<number>();
  #lost = 0;

  /** `undefined` if there is no such file, or, with a warning, if its archive cannot be read. */
  static open(path: string): HistoryReading | undefined {
    try {
      const snapshot = HistorySnapshot.open(path);
      return snapshot && new HistoryReading(path, snapshot);
    } catch (thrown) {
      if (!(thrown instanceof GryphusError) || thrown.code !== 'state-version') throw thrown;
      warn(thrown.message);
      return undefined;
    }
  }

  private constructor(path: string, snapshot: HistorySnapshot) {
    this.#path = path;
    this.snapshot = snapshot;
  }

  /** `undefined` for a line that was rolled back or is damaged. */
  record({ cluster, proc, offset, length }: HistoryEntry): HistoryRecord | undefined {
    const text = this.snapshot.line(offset, length);
    if (text === '') return undefined;
    const line = jobLine(text);
    const ad = line && this.#clusterAd(...line.c);
    if (!line || !ad) {
      this.#damaged.add(line?.c[0] ?? offset);
      this.#lost += 1;
      return undefined;
    }
    return {
      id: { cluster, proc },
      state: stateNamed(line.s) ?? 'completed',
      retired: line.t,
      attrs: new Attrs(line.own, ad),
    };
  }

  close(): void {
    if (this.#lost > 0) warn(this.#damage());
    this.snapshot.close();
  }

  #clusterAd(offset: number, length: number): Attrs | undefined {
    const known = this.#ads.get(offset);
    if (known || this.#ads.has(offset)) return known;
    const line = storedOr(CLUSTER_LINE, this.snapshot.line(offset, length));
    const ad = line && new Attrs(line.ad);
    this.#ads.set(offset, ad);
    return ad;
  }

  #damage(): string {
    const first = Math.min(...this.#damaged);
    let number = 1;
    for (const { offset } of this.snapshot.lines(0)) {
      if (offset >= first) break;
      number += 1;
    }
    const others = this.#damaged.size === 1 ? '' : ` and ${this.#damaged.size - 1} more`;
    const jobs = this.#lost === 1 ? '1 job of it is' : `${this.#lost} jobs of it are`;
    return `The history ${this.#path} is damaged in line ${number}${others}: ${jobs} not shown.`;
  }
}
