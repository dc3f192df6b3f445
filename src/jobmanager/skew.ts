import type { Report } from '../site/contract.ts';

/** Smaller differences, in seconds, are ignored: clocks that follow a time server agree this closely. */
const WORTH_MENDING = 30;
/** Estimates that differ by no more than this count as equal. */
const STEADY = 2;

/** How far a site's clock is behind ours (negative: ahead), as far as its answers prove. Seconds. */
export class Skew {
  #behind = 0;

  /** The site's clock showed `there` at some time between these two times of ours. */
  heard(there: number, asked: number, answered: number): void {
    const behind = there + 1 < asked ? asked - there : there > answered ? answered - there : 0;
    const seconds = Math.abs(behind) < WORTH_MENDING ? 0 : Math.round(behind);
    if (seconds === 0 || this.#behind === 0 || Math.abs(seconds - this.#behind) > STEADY) this.#behind = seconds;
  }

  /** The report with its times converted to our clock. */
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
