import type { ServerResponse } from 'node:http';
import type { EventWithCursor } from '../index.ts';
import { eventLine, type EventLine } from './event-line.ts';
import type { Hub } from './hub.ts';

/** A comment in a quiet stream shows that the connection still lives; milliseconds. */
const BEAT_MS = 10_000;
/** Bytes that may wait for a slow page; beyond that it is cut off and comes back when it can. */
const MOST_WAITING = 4 * 2 ** 20;
/** How many jobs, and how many events, one message names. */
const MOST_NAMED = 500;
const MOST_LINES = 200;

/** What changed, for the views to fetch what they show. */
export interface Change {
  /** Unix milliseconds of the latest change. */
  readonly at: number;
  /** Changed jobs; `undefined` if there are too many to name. */
  readonly jobs?: readonly string[];
  readonly clusters: readonly number[];
  readonly ended: number;
  readonly sites: boolean;
  readonly credentials: boolean;
  /** The latest events in words, newest last. */
  readonly lines: readonly EventLine[];
  /** How many events there were. */
  readonly count: number;
}

/**
 * Server-sent events of type `change`, each with the cursor of its last event as id. A page that comes back with
 * `Last-Event-ID` gets what it missed, or `reset` if that is no longer known and it must fetch everything again.
 */
export function streamChanges(response: ServerResponse, hub: Hub, lastId: string | undefined): void {
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  const send = (text: string): void => {
    if (response.writableLength > MOST_WAITING) response.destroy();
    else response.write(text);
  };
  const sendChange = (events: readonly EventWithCursor[]): void => {
    const last = events.at(-1);
    if (last) send(`event: change\nid: ${last.cursor}\ndata: ${JSON.stringify(changeOf(events))}\n\n`);
  };
  const missed = lastId === undefined ? undefined : hub.after(lastId);
  if (missed === undefined) {
    const latest = hub.latest.at(-1);
    send(`event: reset\n${latest ? `id: ${latest.cursor}\n` : ''}data: {}\n\n`);
  } else {
    send('event: resumed\ndata: {}\n\n');
    sendChange(missed);
  }
  const stop = hub.listen(sendChange);
  const beat = setInterval(() => send(': \n\n'), BEAT_MS);
  response.once('close', () => {
    clearInterval(beat);
    stop();
  });
}

export function changeOf(events: readonly EventWithCursor[]): Change {
  const jobs = new Set<string>();
  const clusters = new Set<number>();
  let ended = 0;
  let at = 0;
  let sites = false;
  let credentials = false;
  for (const event of events) {
    at = Math.max(at, event.at);
    if ('cluster' in event) clusters.add(event.cluster);
    if ('job' in event && event.job !== undefined) jobs.add(event.job);
    if (event.type === 'retired') for (const job of event.jobs) jobs.add(job);
    if (event.type === 'transition' && (event.to === 'completed' || event.to === 'removed')) ended += 1;
    if (event.type === 'notice') {
      sites ||= event.about.startsWith('site-');
      credentials ||= event.about.startsWith('credential-');
    }
  }
  for (const job of jobs) clusters.add(Number.parseInt(job, 10));
  return {
    at,
    ...(jobs.size <= MOST_NAMED ? { jobs: [...jobs] } : {}),
    clusters: [...clusters].slice(0, MOST_NAMED),
    ended,
    sites,
    credentials,
    lines: events.slice(-MOST_LINES).map(eventLine),
    count: events.length,
  };
}
