import type { Report } from '../site/contract.ts';

/** Less than this is left alone, seconds: clocks that follow a time server agree so well. */
const WORTH_MENDING = 30;
/** An estimate that differs by no more is the same. */
const STEADY = 2;

/** How far a site's clock is behind ours (ahead: below zero), as far as its answers prove it. Seconds. */
export class Skew {
  #behind = 0;

  /** It said that it is `there`, at some time between these of ours. */
  heard(there: number, asked: number, answered: number): void {
    const behind = there + 1 < asked ? asked - there : there > answered ? answered - there : 0;
    const seconds = Math.abs(behind) < WORTH_MENDING ? 0 : Math.round(behind);
    if (seconds === 0 || this.#behind === 0 || Math.abs(seconds - this.#behind) > STEADY) this.#behind = seconds;
  }

  /** With times of our clock. */
  mended(report: Report): Report {
    const behind = this.#behind;
    if (behind === 0) return report;
    if (report.is === 'running' && report.since !== undefined) return { ...report, since: report.since + behind };
    if (report.is !== 'ended') return report;
    return {
      ...report,
      ...(report.startedAt === undefined ? {} : { startedAt: report.startedAt + behind }),
      ...(report.endedAt === undefined ? {} : { endedAt: report.endedAt + behind }),
    };
  }
}
