import type * as z from 'zod';
import type { UserLogEvent } from '../index.ts';
import type { ATTEMPT } from './schemas.ts';

type Attempt = z.infer<typeof ATTEMPT>;

const ENDS: Readonly<Partial<Record<UserLogEvent['type'], string>>> = {
  evicted: 'evicted',
  requeued: 'ended, and runs again',
  held: 'held',
  aborted: 'removed',
  'shadow-exception': 'lost',
};

/** Each run of the job, by its user log. Times are Unix milliseconds. */
export function attemptsOf(events: readonly UserLogEvent[]): Attempt[] {
  const attempts: Attempt[] = [];
  for (const event of events) {
    if (event.type === 'execute') {
      attempts.push({ number: attempts.length + 1, host: event.slot ?? event.host, started: event.at, how: 'runs' });
      continue;
    }
    const last = attempts.at(-1);
    if (!last || last.ended !== undefined) continue;
    const how = event.type === 'terminated' ? endingOf(event) : ENDS[event.type];
    if (how !== undefined) attempts[attempts.length - 1] = { ...last, ended: event.at, how };
  }
  return attempts;
}

function endingOf(event: Extract<UserLogEvent, { type: 'terminated' }>): string {
  return event.signal === undefined ? `exit status ${event.exitCode}` : `signal ${event.signal}`;
}
