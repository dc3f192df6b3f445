import { availableParallelism } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import type { Gryphus, MapTask } from '../index.ts';
import type { Files, Plan } from './map-plan.ts';
import type { MapName, Turn } from './map-words.ts';

/** The inputs of a task, and its number, from 1. */
export interface Numbered {
  readonly row: readonly string[];
  readonly number: number;
}

/** A task that has been given to the pool. */
export type Given = Numbered & Turn;

/** Waits between one and the next, unless it is stopped. */
export async function* spaced<T>(
  given: AsyncIterable<T> | Iterable<T>,
  seconds: number | undefined,
  stop: AbortSignal,
): AsyncGenerator<T> {
  let first = true;
  for await (const one of given) {
    if (seconds !== undefined && !first) await wait(seconds * 1000, undefined, { signal: stop }).catch(() => undefined);
    first = false;
    if (stop.aborted) return;
    yield one;
  }
}

export async function* numbered(
  inputs: AsyncIterable<readonly string[]>,
  skip: (one: Numbered) => boolean,
): AsyncGenerator<Numbered> {
  let number = 0;
  for await (const row of inputs) {
    const one = { row, number: ++number };
    if (!skip(one)) yield one;
  }
}

export async function* made(
  rows: AsyncIterable<Numbered>,
  { words }: Pick<Plan, 'words'>,
  { own, back }: Files,
  slots: Slots,
): AsyncGenerator<MapTask<Given>> {
  for await (const one of rows) {
    const slot = await slots.take();
    if (slot === undefined) return;
    const of = { ...one, slot };
    const names = (all: readonly MapName[]) => all.map((name) => name.of(of.row, of));
    yield { args: words(of.row, of), of, inputs: names(own), outputs: names(back) };
  }
}

/** Numbers from 1 for tasks that are under way at the same time, the lowest that is free for each. */
export class Slots {
  readonly #most: number;
  readonly #taken = new Set<number>();
  #wake: (() => void) | undefined;
  #over = false;

  /** `most`: at once; a task that would be one more waits. */
  constructor(most: number) {
    this.#most = most;
  }

  /** `undefined` if there are no more tasks. */
  async take(): Promise<number | undefined> {
    while (this.#taken.size >= this.#most && !this.#over) await new Promise<void>((wake) => (this.#wake = wake));
    if (this.#over) return undefined;
    let slot = 1;
    while (this.#taken.has(slot)) slot++;
    if (this.#most !== Infinity) this.#taken.add(slot);
    return slot;
  }

  free(slot: number): void {
    this.#taken.delete(slot);
    this.#wake?.();
  }

  end(): void {
    this.#over = true;
    this.#wake?.();
  }
}

/** How many tasks at once `--jobs` means: `8`, `50%` of the pool's cores, `+2` or `-2` of them; `undefined`: no limit. */
export async function tasksAtOnce(jobs: string | undefined, cores: () => Promise<number>): Promise<number | undefined> {
  if (jobs === undefined || jobs === '0') return undefined;
  const [, sign, digits = '', percent] = /^([+-]?)(\d{1,6})(%?)$/.exec(jobs) ?? [];
  if (sign === undefined || (sign !== '' && percent !== ''))
    throw new GryphusError('usage', `--jobs cannot be ${JSON.stringify(jobs)}.`, {
      suggestions: ["Give a number, a part of the pool's cores such as 50%, or +2 or -2 of them."],
    });
  if (percent !== '') return Math.max(1, Math.round(((await cores()) * Number(digits)) / 100));
  if (sign === '') return Number(digits);
  return Math.max(1, (await cores()) + Number(`${sign}${digits}`));
}

/** The cores that the pool has now; without a worker, this machine's. */
export async function coresOf(gryphus: Gryphus): Promise<number> {
  const slots = await gryphus.slots();
  return slots.reduce((sum, ad) => sum + Number(ad['Cpus'] ?? 0), 0) || availableParallelism();
}
