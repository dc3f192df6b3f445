import type { SubmitWarning } from './fault.ts';

interface Kind {
  readonly warning: SubmitWarning;
  /** The first job that it was reported for, and the last. */
  readonly first: number;
  last: number;
  jobs: number;
}

/**
 * Non-fatal errors of macro functions, after which HTCondor carries on with an empty or odd value. Each is reported
 * once per line and function, for the first job affected, with the number of the others: there may be a million.
 */
export class Complaints {
  readonly #kinds = new Map<string, Kind>();
  /** The job being made. */
  job = 0;

  add(message: string, line: number | undefined): void {
    const key = `${line} ${/^\$\w+/.exec(message)?.[0] ?? message}`;
    const known = this.#kinds.get(key);
    if (known === undefined) {
      const warning = { message, ...(line === undefined || line < 1 ? {} : { line }) };
      this.#kinds.set(key, { warning, first: this.job, last: this.job, jobs: 1 });
    } else if (this.job > known.last) {
      known.last = this.job;
      known.jobs += 1;
    }
  }

  get warnings(): readonly SubmitWarning[] {
    return [...this.#kinds.values()].map(({ warning, first, jobs }) => {
      if (first === 0 && jobs === 1) return warning;
      const more = jobs === 1 ? '' : `, and ${jobs - 1} more like it`;
      return { ...warning, message: `${warning.message} (job ${first}${more})` };
    });
  }
}
