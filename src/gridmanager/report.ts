import { LIFE, type LifeEvent, next, type State } from '../job/life.ts';
import type { Report } from '../site/contract.ts';

/**
 * What a site's report means for a job in `state`: the event to record, or `undefined` if it brings nothing new or
 * cannot be interpreted (an unclear report never counts as the job's end).
 */
export function eventOf(report: Report, state: State): LifeEvent | undefined {
  const event = meaning(report);
  if (event === undefined) return undefined;
  const to = next(state, event);
  return to === undefined || to === state ? undefined : event;
}

function meaning(report: Report): LifeEvent | undefined {
  switch (report.is) {
    // The site has the attempt but lost the commit: what is not committed never started.
    case 'prepared':
    case 'lost':
      return 'lost';
    case 'queued':
    case 'held-by-site':
    case 'asking':
      return 'queued';
    case 'running':
      return 'started';
    case 'suspended':
      return 'suspended';
    case 'ended':
      return 'ended';
    case 'unclear':
      return undefined;
  }
}

/** The site's status of the job, for `GridJobStatus` and `gryphus why`. */
export function reportMessage(report: Report): string {
  switch (report.is) {
    case 'prepared':
      return 'PREPARED';
    case 'queued':
      return report.why && report.why !== 'PENDING' ? `PENDING (${report.why})` : 'PENDING';
    case 'held-by-site':
      return `HELD (${report.why})`;
    case 'asking':
      return 'READY (it waits for permission to start)';
    case 'running':
      return 'RUNNING';
    case 'suspended':
      return report.why ? `SUSPENDED (${report.why})` : 'SUSPENDED';
    case 'lost':
      return `LOST (${report.why})`;
    case 'ended':
      return 'DONE';
    case 'unclear':
      return `UNKNOWN (${report.message})`;
  }
}

/** States in which the job has an attempt at the site that must be watched. */
export const AT_SITE: readonly State[] = (Object.keys(LIFE) as State[]).filter((s) => LIFE[s].does === 'watch');
