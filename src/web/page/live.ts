import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, ask, type EventLine, nextLogin } from './api.ts';

/** What the stream says of a moment (stream.ts); `all`: anything may have changed. */
export interface Change {
  readonly all?: true;
  readonly jobs?: readonly string[];
  readonly clusters: readonly number[];
  readonly ended: number;
  readonly sites: boolean;
  readonly credentials: boolean;
  readonly lines: readonly EventLine[];
  readonly count: number;
}

export type Link = 'connecting' | 'live' | 'away' | 'refused';

const EVERYTHING: Change = { all: true, clusters: [], ended: 0, sites: true, credentials: true, lines: [], count: 0 };
/** Without even a comment for this long, the connection is taken for dead; milliseconds. */
const SILENCE_MS = 25_000;
/** Until the next try, at first and at most; milliseconds. */
const SOON_MS = 300;
const LATEST_MS = 5000;
/** Between two requests of one view: as long as the last one took, at least and at most this; milliseconds. */
const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

const listeners = new Set<(change: Change) => void>();
const links = new Set<(link: Link) => void>();
let link: Link = 'connecting';
let stop = new AbortController();
let lastId: string | undefined;
let wait = SOON_MS;

/** Follows the stream for good; a page that was away catches up. */
export async function followStream(): Promise<void> {
  for (;;) {
    stop = new AbortController();
    try {
      await readStream(stop);
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.status === 403) {
        const login = nextLogin();
        say('refused');
        await login;
        continue;
      }
    }
    say('away');
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(2 * wait, LATEST_MS);
  }
}

async function readStream(stopper: AbortController): Promise<void> {
  let alarm = setTimeout(() => stopper.abort(), SILENCE_MS);
  const headers: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId };
  try {
    const { body } = await ask('/stream', { signal: stopper.signal, headers });
    if (!body) return;
    say('live');
    wait = SOON_MS;
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let held = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(alarm);
      alarm = setTimeout(() => stopper.abort(), SILENCE_MS);
      const messages = (held + value).split('\n\n');
      held = messages.pop() ?? '';
      for (const message of messages) take(message);
    }
  } finally {
    clearTimeout(alarm);
  }
}

function take(message: string): void {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(message)?.[1];
  const event = field('event');
  lastId = field('id') ?? lastId;
  if (event === 'reset') tell(EVERYTHING);
  if (event !== 'change') return;
  const change: unknown = JSON.parse(field('data') ?? 'null');
  if (isChange(change)) tell(change);
}

function isChange(value: unknown): value is Change {
  return typeof value === 'object' && value !== null && 'clusters' in value && 'lines' in value;
}

function tell(change: Change): void {
  for (const listener of listeners) listener(change);
}

function say(now: Link): void {
  link = now;
  for (const listener of links) listener(now);
}

// A machine that wakes up need not wait for the silence to be noticed.
window.addEventListener('online', () => stop.abort());

export function useLink(): Link {
  const [now, setNow] = useState(link);
  useEffect(() => {
    links.add(setNow);
    setNow(link);
    return () => void links.delete(setNow);
  }, []);
  return now;
}

export function useChanges(listener: (change: Change) => void): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const call = (change: Change) => latest.current(change);
    listeners.add(call);
    return () => void listeners.delete(call);
  }, []);
}

export interface Live<T> {
  readonly data: T | undefined;
  readonly error: ApiError | undefined;
  readonly again: () => void;
}

interface LiveOptions {
  /** Which changes matter; default: all. */
  readonly on?: (change: Change) => boolean;
  /** Also asked for this often; milliseconds. */
  readonly everyMs?: number;
}

/**
 * An answer of the server that is asked for again when something changes: one request at a time, the last one after the last
 * change. `key` stands for the question; with another key the old answer is shown until the new one is there.
 */
export function useLive<T>(
  key: string,
  fetcher: (signal: AbortSignal) => Promise<T>,
  options: LiveOptions = {},
): Live<T> {
  const [state, setState] = useState<{ data: T | undefined; error: ApiError | undefined }>({
    data: undefined,
    error: undefined,
  });
  const latest = useRef({ fetcher, options });
  latest.current = { fetcher, options };
  const wake = useRef<() => void>(() => undefined);
  useEffect(() => {
    const gone = new AbortController();
    let wanted = true;
    let busy = false;
    const round = async (): Promise<void> => {
      if (busy) return;
      busy = true;
      while (wanted && !gone.signal.aborted) {
        wanted = false;
        const began = performance.now();
        try {
          const data = await latest.current.fetcher(gone.signal);
          if (!gone.signal.aborted) setState({ data, error: undefined });
        } catch (thrown) {
          const error = thrown instanceof ApiError ? thrown : new ApiError(0, String(thrown));
          if (!gone.signal.aborted) setState(({ data }) => ({ data, error }));
        }
        const took = performance.now() - began;
        await new Promise((done) => setTimeout(done, Math.min(Math.max(took, PAUSE_MS), LONGEST_PAUSE_MS)));
      }
      busy = false;
    };
    wake.current = () => {
      wanted = true;
      void round();
    };
    const listener = (change: Change): void => {
      if (change.all || (latest.current.options.on?.(change) ?? true)) wake.current();
    };
    listeners.add(listener);
    const { everyMs } = latest.current.options;
    const timer = everyMs === undefined ? undefined : setInterval(() => document.hidden || wake.current(), everyMs);
    void round();
    return () => {
      gone.abort();
      listeners.delete(listener);
      clearInterval(timer);
    };
  }, [key]);
  return { ...state, again: () => wake.current() };
}

/** The time, for what grows older on the screen; Unix milliseconds. */
export function useNow(everyMs = 1000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
