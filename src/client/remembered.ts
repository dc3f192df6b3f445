import { hostname } from 'node:os';
import { Attrs } from '../job/attrs.ts';
import type { Transitioned } from '../job/events.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import { isEnd, LIFE, type LifeEvent, type State } from '../job/life.ts';
import type { UserLogEvent } from '../user-log/event.ts';
import { readNumber } from '../job/values.ts';
import { logEvents, submitEvent } from '../job/log-events.ts';
import type { JobView } from './types.ts';

/** What a job's ad still shows of its life, as user log events: only the last run, only the current hold. */
function rememberedEvents(id: JobId, state: State, attrs: Attrs): UserLogEvent[] {
  const at = (name: string) => (readNumber(attrs, name) ?? 0) * 1000;
  const events = [submitEvent(id, at('QDate'), attrs, hostname())];
  const step = (event: LifeEvent, to: State, time: number) => {
    const job = formatJobId(id) as Transitioned['job'];
    const attempt = readNumber(attrs, 'GryphusAttempt') ?? 0;
    const made: Transitioned = { v: 1, at: time, type: 'transition', job, event, from: 'idle', to, attempt, set: {} };
    events.push(...logEvents(id, made, attrs));
  };
  if (at('JobCurrentStartDate') > 0) step('started', 'running', at('JobCurrentStartDate'));
  if (LIFE[state].shows === 'held') step('hold', state, at('EnteredCurrentStatus'));
  if (state === 'completed') step('complete', state, at('CompletionDate') || at('EnteredCurrentStatus'));
  else if (isEnd(state)) step('remove', state, at('EnteredCurrentStatus'));
  return events;
}

/** Of all these jobs, in time order. */
export async function eventsOfJobs(jobs: AsyncIterable<JobView>): Promise<readonly UserLogEvent[]> {
  const events: UserLogEvent[] = [];
  for await (const { id, state, ad } of jobs) events.push(...rememberedEvents(id, state, new Attrs(ad)));
  return events.sort((a, b) => a.at - b.at);
}
