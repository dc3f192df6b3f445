import type { EventWithCursor } from '../index.ts';

/** An event in words. */
export interface EventLine {
  readonly cursor: string;
  /** Unix milliseconds. */
  readonly at: number;
  readonly kind: string;
  readonly job?: string;
  readonly site?: string;
  readonly text: string;
}

/** How long a text of a job or a site may be here; characters. */
const LONGEST = 300;

export function eventLine(event: EventWithCursor): EventLine {
  const { cursor, at, type: kind } = event;
  const line = (text: string, more: { readonly job?: string; readonly site?: string } = {}): EventLine => ({
    cursor,
    at,
    kind,
    ...more,
    text: text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text,
  });
  switch (event.type) {
    case 'submitted':
      return line(`cluster ${event.cluster} of ${event.owner}: ${procs(event.procs)} submitted`);
    case 'materialized':
      return line(`cluster ${event.cluster}: ${procs(event.procs)} more${event.done ? ', the last' : ''}`);
    case 'transition': {
      const reason = event.set['HoldReason'] ?? event.set['RemoveReason'];
      return line(`${event.event}: ${event.from} → ${event.to}${reason ? `: ${reason}` : ''}`, { job: event.job });
    }
    case 'edited':
      return line(`changed: ${Object.keys(event.set).join(', ')}`, { job: event.job });
    case 'cluster-edited':
      return line(`cluster ${event.cluster} changed: ${Object.keys(event.set).join(', ')}`);
    case 'routed':
      return line(event.site === '' ? 'taken back from its site' : `goes to ${event.site}`, {
        job: event.job,
        site: event.site,
      });
    case 'candidate':
      return line(
        `candidate ${event.attempt} at ${event.site}: ${event.event}${event.message ? `: ${event.message}` : ''}`,
        {
          job: event.job,
          site: event.site,
        },
      );
    case 'retired':
      return line(
        `${event.jobs.length === 1 ? `${event.jobs[0]} has` : `${event.jobs.length} jobs have`} left the queue`,
      );
    case 'notice':
      return line(event.message, {
        ...(event.job === undefined ? {} : { job: event.job }),
        ...(event.site === undefined ? {} : { site: event.site }),
      });
  }
}

function procs(ranges: readonly (readonly [from: number, to: number])[]): string {
  const count = ranges.reduce((sum, [from, to]) => sum + to - from, 0);
  return count === 1 ? '1 job' : `${count} jobs`;
}
