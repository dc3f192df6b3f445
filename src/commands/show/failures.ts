import type { FailureGroup } from '../../index.ts';
import { formatJobId } from '../../job/ids.ts';
import { counted } from '../../util/plain-text.ts';
import { paint } from './colour.ts';
import { visible } from './width.ts';

/** At most this many kinds of failure are described. */
const MOST = 10;

/** The failures of jobs, equal ones together: `3 jobs: exit status 1 (12.0, 12.4, 12.7)`, and what they said last. */
export function failureLines(groups: readonly FailureGroup[], colours = false): string[] {
  const lines = groups.slice(0, MOST).flatMap(({ outcome, reason, lines, count, jobs }) => {
    const names = [...jobs.map(formatJobId), ...(count > jobs.length ? ['…'] : [])].join(', ');
    const why = reason === undefined ? '' : `: ${visible(reason)}`;
    const what = paint(outcome, outcome === 'held' ? 'yellow' : 'red', colours);
    return [`${counted(count, 'job')}: ${what}${why} (${names})`, ...lines.map((line) => `    | ${visible(line)}`)];
  });
  const more = groups.slice(MOST).reduce((sum, { count }) => sum + count, 0);
  return more === 0 ? lines : [...lines, `${counted(more, 'job')} failed in other ways.`];
}
