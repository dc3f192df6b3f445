import { resolve } from 'node:path';
import { IdSet } from '../job/id-set.ts';
import { formatJobId } from '../job/ids.ts';
import { outcomeOf, wentWell } from '../job/outcome.ts';
import { readNumber, readString } from '../job/values.ts';
import type { HistoryRecord, JobRecord, Queue, SeenJob } from '../queue/api.ts';
import { lookFor } from './select.ts';
import { lastLines } from './failures.ts';
import type { Selection, Why } from './types.ts';

/**
 * For named jobs and clusters: every job to say something about, wherever it is, without a cluster's jobs that left the
 * queue successfully. For any other selection: what is in the queue.
 */
export async function* jobsToExplain(
  queue: Queue,
  selection: Selection,
): AsyncGenerator<{ readonly here: JobRecord } | { readonly gone: HistoryRecord }> {
  const { ids, clusters } = selection;
  const named = ids !== undefined || clusters !== undefined;
  const single = new IdSet();
  for (const id of ids ?? []) single.add(id);
  for await (const sighting of lookFor(queue, selection, named)) {
    if (sighting.in === 'queue') for (const here of sighting.jobs) yield { here };
    else for (const gone of sighting.jobs) if (single.has(gone.id) || !wentWell(outcome(gone))) yield { gone };
  }
}

function outcome({ state, attrs }: SeenJob) {
  return outcomeOf(state, attrs);
}

/** How a job ended that has left the queue. */
export async function whyEnded(job: HistoryRecord): Promise<Why> {
  const { id, state, attrs } = job;
  const name = formatJobId(id);
  const host = readString(attrs, 'LastRemoteHost') ?? readString(attrs, 'RemoteHost');
  const ran = readNumber(attrs, 'RemoteWallClockTime') ?? 0;
  const error = readString(attrs, 'Err');
  const message = readString(attrs, 'GryphusSiteWords');
  const well = wentWell(outcome(job));
  const ended = outcome(job).is !== 'removed';
  return {
    id,
    state,
    summary: summaryOf(job),
    details: [
      ...(ran > 0 ? [`It ran for ${ran.toFixed(0)} s${host === undefined ? '' : `, on ${host}`}.`] : []),
      ...(message === undefined || message === '' ? [] : [`Its site said: ${message}`]),
      ...(ended && !well && error !== undefined && error !== '/dev/null'
        ? [
            `Its standard error: ${resolve(readString(attrs, 'Iwd') ?? '/', error)}`,
            ...(await lastLines(attrs)).map((line) => `| ${line}`),
          ]
        : []),
    ],
    suggestions: [
      ...(ended && !well && error !== undefined && error !== '/dev/null' ? [`gryphus tail --stderr ${name}`] : []),
      `gryphus log ${name}`,
    ],
  };
}

function summaryOf(job: HistoryRecord): string {
  const became = outcome(job);
  switch (became.is) {
    case 'exited':
      return became.code === 0 ? 'It completed: exit status 0.' : `It exited with status ${became.code}.`;
    case 'killed':
      return `It was killed by signal ${became.signal}.`;
    case 'ended by its site':
      return 'It was terminated by its site.';
    case 'removed': {
      const reason = readString(job.attrs, 'RemoveReason');
      return reason === undefined || reason === '' ? 'It was removed.' : `It was removed: ${reason}.`;
    }
    case 'held':
    case 'open':
      return `It left the queue as ${job.state}.`;
  }
}
