import { closeSync, existsSync, openSync, readFileSync, statSync } from 'node:fs';
import type { AttemptKey } from '../job/ids.ts';
import { readOwner } from '../site/exit-record.ts';
import type { Chunk, Follow, Report } from '../site/contract.ts';
import type { StreamName } from '../staging/streams.ts';
import { HOME_FILES, liveFile } from './gass-handler.ts';
import { isOver, classify, type GramVerdict, NOTHING_SEEN, type GramSeen } from './classify.ts';
import { type GramMessage, numberOf, STATE } from './protocol.ts';
import { readResults } from './results.ts';
import type { GramRecord, GramStore } from './store.ts';
import { readAt } from '../staging/tar.ts';

/** How many bytes of a stream one answer carries at most. */
const MOST_STREAMED = 1 << 20;

/** How long to wait for the results, in milliseconds: a job manager reports "done" before it has sent them. */
const RESULTS_MS = 30_000;

interface Entry {
  seen: GramSeen;
  report: Report | undefined;
  /** The number of its last change, by which callers ask for news. */
  changed: number;
  /** When to ask the job manager again, on the monotonic clock. */
  dueAt: number;
  /** When GRAM first reported that the job is over, on the same clock. */
  overAt: number | undefined;
}

/** What is known of every attempt, and which of it is new to the caller. */
export class Attempts {
  readonly #store: GramStore;
  readonly #resultsMs: number;
  readonly #entries = new Map<AttemptKey, Entry>();
  #changes = 0;

  constructor(store: GramStore, resultsMs = RESULTS_MS) {
    this.#store = store;
    this.#resultsMs = resultsMs;
  }

  get change(): number {
    return this.#changes;
  }

  seen(key: AttemptKey): GramSeen {
    return this.#entry(key).seen;
  }

  /** Takes what GRAM says about the job in a reply or a callback. */
  hear(key: AttemptKey, message: GramMessage): void {
    const state = numberOf(message, 'status');
    if (state === 0) return;
    const callback = message.fields.has('job-manager-url');
    const failure = numberOf(message, callback ? 'failure-code' : 'job-failure-code');
    const { seen } = this.#entry(key);
    const active = seen.active || state === STATE.active || state === STATE.stageOut;
    const more = message.fields.get('gt3-failure-message');
    const adapter = more === undefined ? seen.adapter : adapterMessage(more);
    this.note(key, { state, failure, adapter, active, gone: false });
  }

  /** Records what was learnt about an attempt, and looks at what it has sent home. */
  note(key: AttemptKey, change: Partial<GramSeen>): void {
    const entry = this.#entry(key);
    entry.seen = { ...entry.seen, ...change };
    entry.overAt = isOver(entry.seen.state) ? (entry.overAt ?? performance.now()) : undefined;
    const waited = entry.overAt !== undefined && performance.now() - entry.overAt > this.#resultsMs;
    entry.seen = { ...entry.seen, waited };
    if (entry.seen.owner === undefined) entry.seen = { ...entry.seen, ...this.#owner(key) };
    if ((isOver(entry.seen.state) || entry.seen.gone) && entry.seen.exit === undefined) {
      const exit = readResults(this.#store.path(key, HOME_FILES.results))?.exit;
      entry.seen = { ...entry.seen, exit, message: this.#message(key) };
    }
    this.#classify(key, entry);
  }

  verdict(key: AttemptKey): GramVerdict {
    const record = this.#store.get(key);
    return record ? classify(record, this.#entry(key).seen) : { report: undefined };
  }

  /** Forgets everything about an attempt that starts over or has ended. */
  drop(key: AttemptKey): void {
    this.#entries.delete(key);
  }

  due(key: AttemptKey): number {
    return this.#entry(key).dueAt;
  }

  askAt(key: AttemptKey, at: number): void {
    this.#entry(key).dueAt = at;
  }

  /** Reports that changed after change number `since`; all reports if it is undefined. */
  reports(since: number | undefined): Report[] {
    const reports: Report[] = [];
    for (const { key } of this.#store.all()) {
      const entry = this.#entry(key);
      if (entry.report === undefined) this.#classify(key, entry);
      if (entry.report && (since === undefined || entry.changed > since)) reports.push(entry.report);
    }
    return reports;
  }

  /** What these streams produced beyond what the caller has. */
  chunks(follow: readonly Follow[]): Chunk[] {
    const chunks: Chunk[] = [];
    for (const one of follow) {
      for (const stream of ['stdout', 'stderr'] as const) {
        const data = this.#piece(one.key, stream, one[stream]);
        if (data.length > 0) chunks.push({ key: one.key, stream, offset: one[stream], data });
      }
    }
    return chunks;
  }

  /** Comes from what the job sent while running or, once it is over, from its results. */
  #piece(key: AttemptKey, stream: StreamName, from: number): Buffer {
    const results = this.#entry(key).seen.exit && readResults(this.#store.path(key, HOME_FILES.results));
    const member = results?.members.find(({ name }) => name === stream);
    const path = results?.path ?? this.#store.path(key, liveFile(stream));
    if (!existsSync(path)) return Buffer.alloc(0);
    const length = Math.min((member?.bytes ?? statSync(path).size) - from, MOST_STREAMED);
    if (length <= 0) return Buffer.alloc(0);
    const fd = openSync(path, 'r');
    try {
      return readAt(fd, (member?.offset ?? 0) + from, length);
    } finally {
      closeSync(fd);
    }
  }

  #classify(key: AttemptKey, entry: Entry): void {
    const { report } = this.verdict(key);
    if (JSON.stringify(report) === JSON.stringify(entry.report)) return;
    entry.report = report;
    this.#changes += 1;
    entry.changed = this.#changes;
  }

  #entry(key: AttemptKey): Entry {
    let entry = this.#entries.get(key);
    if (!entry) {
      entry = { seen: NOTHING_SEEN, report: undefined, changed: 0, dueAt: Number.NEGATIVE_INFINITY, overAt: undefined };
      this.#entries.set(key, entry);
    }
    return entry;
  }

  #owner(key: AttemptKey): Partial<GramSeen> {
    const path = this.#store.path(key, HOME_FILES.owner);
    return existsSync(path) ? { owner: readOwner(readFileSync(path, 'utf8').trim()) } : {};
  }

  /** The last line that the job's own script wrote about its failure. */
  #message(key: AttemptKey): string {
    const path = this.#store.path(key, HOME_FILES.message);
    if (!existsSync(path)) return '';
    const lines = readFileSync(path, 'utf8').slice(-2000).trim().split('\n');
    return lines.at(-1) ?? '';
  }
}

/** The attempt that a callback is about: the path of its contact survives restarts of the job manager. */
export function attemptOf(message: GramMessage, records: readonly GramRecord[]): GramRecord | undefined {
  const url = message.fields.get('job-manager-url');
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { pathname } = new URL(url);
  return records.find(({ contact }) => contact !== undefined && new URL(contact).pathname === pathname);
}

/** Makes an adapter's message fit into a sentence; adapters write a line end as the two characters `\n`. */
function adapterMessage(message: string): string {
  return message
    .replaceAll(/(\s|\\n)+/g, ' ')
    .trim()
    .slice(0, 500);
}
