import { closeSync, existsSync, openSync, readFileSync, statSync } from 'node:fs';
import type { AttemptKey } from '../job/ids.ts';
import { readOwner } from '../jobmanager/exit-record.ts';
import type { Chunk, Follow, Report } from '../site/contract.ts';
import type { StreamName } from '../staging/streams.ts';
import { HOME_FILES, liveFile } from './gass-handler.ts';
import { isOver, classify, type Verdict, NOTHING_SEEN, type Seen } from './classify.ts';
import { type Message, numberOf, STATE } from './protocol.ts';
import { readResults } from './results.ts';
import type { GramRecord, GramStore } from './store.ts';
import { readAt } from './tar.ts';

/** The most of a stream that one answer carries, bytes. */
const MOST_STREAMED = 1 << 20;

/** A job manager says "done" before it brings the results, too: they are waited for so long, milliseconds. */
const RESULTS_MS = 30_000;

interface Entry {
  seen: Seen;
  report: Report | undefined;
  /** The number of the change that the caller has or has not heard of. */
  changed: number;
  /** When the job manager is to be asked again, by the monotonic clock. */
  dueAt: number;
  /** When GRAM first said that it is over, by the same. */
  overAt: number | undefined;
}

/** What is known of all attempts, and what of it is news. */
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

  seen(key: AttemptKey): Seen {
    return this.#entry(key).seen;
  }

  /** GRAM's word for the job, from a reply or a callback. */
  hear(key: AttemptKey, message: Message): void {
    const state = numberOf(message, 'status');
    if (state === 0) return;
    const callback = message.fields.has('job-manager-url');
    const failure = numberOf(message, callback ? 'failure-code' : 'job-failure-code');
    const { seen } = this.#entry(key);
    const active = seen.active || state === STATE.active || state === STATE.stageOut;
    const more = message.fields.get('gt3-failure-message');
    const told = more === undefined ? seen.told : oneLine(more);
    this.note(key, { state, failure, told, active, gone: false });
  }

  /** What was learnt of an attempt, together with what came home of it. */
  note(key: AttemptKey, change: Partial<Seen>): void {
    const entry = this.#entry(key);
    entry.seen = { ...entry.seen, ...change };
    entry.overAt = isOver(entry.seen.state) ? (entry.overAt ?? performance.now()) : undefined;
    const waited = entry.overAt !== undefined && performance.now() - entry.overAt > this.#resultsMs;
    entry.seen = { ...entry.seen, waited };
    if (entry.seen.owner === undefined) entry.seen = { ...entry.seen, ...this.#owner(key) };
    if ((isOver(entry.seen.state) || entry.seen.gone) && entry.seen.exit === undefined) {
      const exit = readResults(this.#store.path(key, HOME_FILES.results))?.exit;
      entry.seen = { ...entry.seen, exit, message: this.#words(key) };
    }
    this.#classify(key, entry);
  }

  verdict(key: AttemptKey): Verdict {
    const record = this.#store.get(key);
    return record ? classify(record, this.#entry(key).seen) : { report: undefined };
  }

  /** A new beginning, or the end: nothing is known. */
  drop(key: AttemptKey): void {
    this.#entries.delete(key);
  }

  due(key: AttemptKey): number {
    return this.#entry(key).dueAt;
  }

  askAt(key: AttemptKey, at: number): void {
    this.#entry(key).dueAt = at;
  }

  /** Reports that changed after `since`; of all attempts where that is undefined. */
  reports(since: number | undefined): Report[] {
    const reports: Report[] = [];
    for (const { key } of this.#store.all()) {
      const entry = this.#entry(key);
      if (entry.report === undefined) this.#classify(key, entry);
      if (entry.report && (since === undefined || entry.changed > since)) reports.push(entry.report);
    }
    return reports;
  }

  /** What came of these streams behind what the caller has. */
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

  /** From what it sent while it ran; of a job that is over, from its results. */
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

  #owner(key: AttemptKey): Partial<Seen> {
    const path = this.#store.path(key, HOME_FILES.owner);
    return existsSync(path) ? { owner: readOwner(readFileSync(path, 'utf8').trim()) } : {};
  }

  /** The last line of what the job's own script said of its trouble. */
  #words(key: AttemptKey): string {
    const path = this.#store.path(key, HOME_FILES.message);
    if (!existsSync(path)) return '';
    const lines = readFileSync(path, 'utf8').slice(-2000).trim().split('\n');
    return lines.at(-1) ?? '';
  }
}

/** The attempt that a callback speaks of: the path of a contact stays the same over restarts. */
export function attemptOf(message: Message, records: readonly GramRecord[]): GramRecord | undefined {
  const url = message.fields.get('job-manager-url');
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { pathname } = new URL(url);
  return records.find(({ contact }) => contact !== undefined && new URL(contact).pathname === pathname);
}

/** An adapter's words as they stand in a sentence; it writes its line ends as two characters. */
function oneLine(message: string): string {
  return message
    .replaceAll(/(\s|\\n)+/g, ' ')
    .trim()
    .slice(0, 500);
}
