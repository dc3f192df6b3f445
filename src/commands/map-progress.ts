import { counted, spanText } from '../util/plain-text.ts';
import { progressBar } from './show/dag.ts';
import { ProgressLine } from './show/progress.ts';

/** Characters. */
const BAR = 30;

/** At a terminal, how far a map is. */
export class MapProgress {
  readonly #line = new ProgressLine();
  readonly #bar: boolean;
  readonly #eta: boolean;
  readonly #asked: boolean;
  readonly #begun = performance.now();

  constructor({ bar, eta, progress }: { readonly bar: boolean; readonly eta: boolean; readonly progress: boolean }) {
    this.#bar = bar;
    this.#eta = eta;
    this.#asked = bar || eta || progress;
  }

  /** `total`: of all tasks, if it is known. */
  show(done: number, failed: number, total: number | undefined): void {
    // Without these words, the tasks' own output at the terminal shows how far they are.
    if (process.stdout.isTTY && !this.#asked) return;
    this.#line.show(
      progressText({ done, failed, total, seconds: (performance.now() - this.#begun) / 1000 }, this.#bar, this.#eta),
    );
  }

  /** Before anything else is written to the terminal. */
  clear(): void {
    this.#line.clear();
  }
}

export interface Progress {
  readonly done: number;
  readonly failed: number;
  readonly total: number | undefined;
  /** Since the start. */
  readonly seconds: number;
}

export function progressText({ done, failed, total, seconds }: Progress, bar: boolean, eta: boolean): string {
  const failures = failed > 0 ? `, ${failed} failed` : '';
  if (total === undefined) return `${counted(done, 'task')} done${failures}`;
  const left = eta && done > 0 ? `, ${spanText((seconds / done) * (total - done))} left` : '';
  return `${bar ? `${progressBar(done / total, BAR)} ` : ''}${done} of ${total} done${failures}${left}`;
}
