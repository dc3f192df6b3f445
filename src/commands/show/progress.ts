import type { Gryphus, Selections, Totals } from '../../index.ts';
import { progressBar } from './dag.ts';

const EACH_MS = 500;
/** Characters. */
const BAR = 30;

/** One line on standard error, if that is a terminal, that is written again and again and cleared at the end. */
export class ProgressLine {
  readonly #shows = process.stderr.isTTY;
  #shown = '';

  show(text: string): void {
    if (!this.#shows || text === this.#shown) return;
    process.stderr.write(`\r\u001b[K${text}`);
    this.#shown = text;
  }

  clear(): void {
    if (this.#shown !== '') process.stderr.write('\r\u001b[K');
    this.#shown = '';
  }
}

/** Shows how many of the jobs have ended until `work` is done; `total`: of those that a submit made. */
export async function withProgress<T>(
  gryphus: Gryphus,
  { or = [], ...first }: Selections,
  work: () => Promise<T>,
  total = 0,
): Promise<T> {
  if (!process.stderr.isTTY) return work();
  const line = new ProgressLine();
  let most = total;
  let looking = false;
  let ended = false;
  const look = async (): Promise<void> => {
    const all = await Promise.all([first, ...or].map((one) => gryphus.totals(one)));
    if (ended) return;
    const left = sum(all, 'idle', 'running', 'suspended', 'held', 'unmaterialized');
    most = Math.max(most, left);
    const held = sum(all, 'held');
    const words = [`${sum(all, 'running')} running`, ...(held > 0 ? [`${held} held`] : [])].join(', ');
    if (most > 0) line.show(`${progressBar((most - left) / most, BAR)} ${most - left} of ${most} done, ${words}`);
  };
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    // While the queue is away, there is nothing to show.
    void look()
      .catch(() => undefined)
      .finally(() => (looking = false));
  }, EACH_MS);
  try {
    return await work();
  } finally {
    ended = true;
    clearInterval(timer);
    line.clear();
  }
}

/** Shows how many of the queue's jobs `work` has looked at; it calls back with the numbers, if it is given a function. */
export async function withLooked<T>(
  gryphus: Gryphus,
  work: (looked: ((jobs: number) => void) | undefined) => Promise<T>,
): Promise<T> {
  if (!process.stderr.isTTY) return work(undefined);
  const line = new ProgressLine();
  const { jobs } = await gryphus.totals();
  let seen = 0;
  const timer = setInterval(() => {
    if (seen > 0) line.show(`${progressBar(Math.min(1, seen / jobs), BAR)} ${seen} of ${jobs} jobs looked at`);
  }, EACH_MS);
  try {
    return await work((more) => (seen += more));
  } finally {
    clearInterval(timer);
    line.clear();
  }
}

function sum(all: readonly Totals[], ...names: readonly (keyof Totals)[]): number {
  return all.reduce((so, totals) => so + names.reduce((of, name) => of + totals[name], 0), 0);
}
