import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { Queue } from '../queue/api.ts';
import { eachSecond } from '../util/each-second.ts';
import { isMarked } from '../util/marked-dir.ts';
import { writeWhole } from '../util/private-file.ts';
import { storedOr } from '../util/stored-json.ts';

const MARK = z.object({ incarnation: z.number(), run: z.string(), events: z.number(), cluster: z.number() });
type Mark = z.infer<typeof MARK>;

/** How often the mark is written down while the queue changes, in seconds. */
const EVERY_SECONDS = 15;

/**
 * How far the queue had come, kept beside it in the state directory: Redis drops the end of a file that was cut, and says so only in
 * its log. Sites keep marks too, and by them the jobs are held that may have run (gridmanager/older-copy.ts).
 */
export class KeptMark {
  readonly #queue: Pick<Queue, 'mark' | 'divergence' | 'skipClusters'>;
  readonly #stateDir: string;
  #written = '';
  #stop: (() => void) | undefined;

  constructor(queue: Pick<Queue, 'mark' | 'divergence' | 'skipClusters'>, stateDir: string) {
    this.#queue = queue;
    this.#stateDir = stateDir;
  }

  /** What to say if the queue lacks changes that it had; the ids of clusters that were lost are not given again. */
  async check(): Promise<string | undefined> {
    const seen = this.#read();
    const last = seen && (await this.#queue.divergence(seen));
    if (seen === undefined || last === undefined) return undefined;
    await this.#queue.skipClusters(seen.cluster);
    const lost = seen.cluster > last ? `clusters ${last + 1} to ${seen.cluster}, and ` : '';
    return (
      `The queue lacks its latest changes: ${lost}what happened to other jobs since. Its file was cut or replaced. ` +
      'Jobs that sites hold are known there (gryphus site audit, gryphus recover)'
    );
  }

  /** Writes it down now and then, until `close`. */
  open(): void {
    this.#stop = eachSecond(() => void this.write().catch(() => undefined), { every: EVERY_SECONDS });
  }

  close(): void {
    this.#stop?.();
  }

  async write(): Promise<void> {
    const text = JSON.stringify((await this.#queue.mark()) satisfies Mark);
    if (text === this.#written || !isMarked(this.#stateDir)) return;
    writeWhole(this.#file, text);
    this.#written = text;
  }

  get #file(): string {
    return join(this.#stateDir, 'queue-mark');
  }

  #read(): Mark | undefined {
    try {
      return storedOr(MARK, readFileSync(this.#file, 'utf8'));
    } catch {
      return undefined;
    }
  }
}
