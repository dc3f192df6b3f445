import type { Account, Backend, QueueEntry } from '../backends/contract.ts';
import { type AttemptKey, parseAttemptKey } from '../job/ids.ts';
import type { Report } from '../site/contract.ts';
import type { SiteAnswer } from './answer.ts';
import { liveLines, type ViewEntry, newEntry, nothingKnown, presentLine, runUnknown } from './entry.ts';
import { type Owner, readExit, readOwner } from '../site/exit-record.ts';
import { type ViewAction, classify } from './classify.ts';
import { percentDecode } from '../site/escape.ts';
import { type UnclaimedLine, UnclaimedLines, TAG } from './unclaimed-lines.ts';

/** Whether nothing happened between two looks, apart from a different reason for a hold. */
function alike(before: QueueEntry, now: QueueEntry): boolean {
  return before.is === now.is && (now.is !== 'held' || (before.is === 'held' && before.message === now.message));
}

/**
 * What one site holds of ours, kept up to date by its answers. Only changed attempts are classified again, so 10,000
 * waiting jobs cost nothing. Pure except for the clock that it is given.
 */
export class View {
  readonly #entries = new Map<AttemptKey, ViewEntry>();
  readonly #backend: Backend;
  readonly #dirty = new Set<ViewEntry>();
  readonly #restless = new Set<ViewEntry>();
  /** Submitted, but absent from the queue's last good answer. */
  readonly #missing = new Set<ViewEntry>();
  readonly #unclaimed = new UnclaimedLines();
  #promised: ReadonlyMap<AttemptKey, string | undefined> = new Map();
  #change = 0;
  #vanished = 0;
  /** When the queue last gave a good answer. */
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  get(key: AttemptKey): ViewEntry | undefined {
    return this.#entries.get(key);
  }

  /** The number of the latest change of any report. */
  get change(): number {
    return this.#change;
  }

  /** How many attempts' records the site has lost without being told to delete them. */
  get vanished(): number {
    return this.#vanished;
  }

  /** Reports that changed after `seen`; all of them for 0. */
  reports(seen: number): Report[] {
    if (seen >= this.#change) return [];
    return [...this.#entries.values()].flatMap((e) => (e.changed > seen && e.report ? [e.report] : []));
  }

  /** Whether a look at the queue may settle an open question. */
  get inDoubt(): boolean {
    return this.#restless.size > 0 || this.#missing.size > 0;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** After a commit: submission `n` is intended. */
  submitted(key: AttemptKey, n: number, batchId: string | undefined, now: number): void {
    const entry = this.#entry(key);
    this.#resubmitted(entry, n, now);
    if (batchId !== undefined) entry.batchId = batchId;
  }

  /** Attempts that the site has promised to run, with their batch ids: the next listing should have them. */
  promise(promised: ReadonlyMap<AttemptKey, string | undefined>): void {
    this.#promised = promised;
  }

  prepared(key: AttemptKey): void {
    if (!this.#entries.has(key)) this.#entry(key);
  }

  refused(key: AttemptKey, n: number, status: number, message: string, now: number): void {
    const entry = this.#entry(key);
    this.#resubmitted(entry, n, now);
    entry.refused = { status, message };
  }

  fencedBy(key: AttemptKey, n: number, why: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.submission !== n) return;
    entry.fenced = why;
    this.#dirty.add(entry);
  }

  /** Nobody can begin run `run` of it any more. */
  closed(key: AttemptKey, run: number): void {
    const entry = this.#entries.get(key);
    if (entry?.owner === undefined || entry.owner.run + 1 !== run) return;
    entry.closed = true;
    this.#dirty.add(entry);
  }

  /** It could not be closed: a run was begun, whose record is not here yet. */
  taken(key: AttemptKey, now: number): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) entry.takenAt ??= now;
  }

  accountFor(id: string, account: Account | 'nothing'): void {
    for (const entry of this.#restless) {
      if ((entry.owner?.batchId ?? entry.batchId) !== id) continue;
      // Ids are reused; the directory in the accounting says whose job this was.
      if (account !== 'nothing' && account.key !== undefined && account.key !== entry.key) continue;
      if (account === 'nothing') entry.asked += 1;
      if (typeof entry.account !== 'object') entry.account = account;
      this.#dirty.add(entry);
    }
  }

  forget(key: AttemptKey): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    for (const set of [this.#dirty, this.#restless, this.#missing]) set.delete(entry);
  }

  /** Processes the answer of a poll or a listing. Returns its events, which must be acknowledged. */
  take(answer: SiteAnswer, now: number): string[] {
    const events: string[] = [];
    const listed = new Set<AttemptKey>();
    const queue = answer.lines.filter((line) => line.kind === '+' || line.kind === '-');
    const verdict = answer.lines.find((line) => line.kind === 'queue')?.rest;
    if (verdict === 'full' || verdict === 'diff' || verdict === 'same') this.#takeQueue(queue, verdict === 'full', now);
    let entry: ViewEntry | undefined;
    for (const { kind, rest } of answer.lines) {
      if (kind === 'job') entry = this.#takeJob(rest, now, listed);
      else if (kind === 'event') events.push(...this.#takeEvent(rest, now));
      else if (kind === 'all') this.#dropUnlisted(listed, now);
      else if (entry !== undefined) this.#takeDetail(entry, kind, rest, now);
    }
    return events;
  }

  /** Classifies what changed. Returns the attempts that need an action before more can be said. */
  classify(now: number): ReadonlyMap<ViewAction, readonly ViewEntry[]> {
    const actions = new Map<ViewAction, ViewEntry[]>();
    for (const entry of new Set([...this.#dirty, ...this.#restless])) {
      if (entry.recordLost && this.#hasLeft(entry, now)) {
        this.#vanish(entry);
        continue;
      }
      const { report, action, restless } = classify(entry, this.#backend, now, this.#lookedAt);
      if (JSON.stringify(report) !== JSON.stringify(entry.report)) {
        entry.report = report;
        entry.changed = ++this.#change;
      }
      if (report.is === 'queued' && entry.owner !== undefined) entry.backInQueue = true;
      if (restless) this.#restless.add(entry);
      else this.#restless.delete(entry);
      if (report.is === 'ended' || report.is === 'lost') this.#missing.delete(entry);
      if (action !== undefined) actions.set(action, [...(actions.get(action) ?? []), entry]);
    }
    this.#dirty.clear();
    return actions;
  }

  /** Live tags in the queue of earlier submissions and of waiting second copies: they must not run, and will not. */
  staleCopies(): string[] {
    const tags: string[] = [];
    for (const entry of this.#entries.values()) {
      for (const [n, copies] of entry.queue) {
        if (n < entry.submission && [...copies.values()].some((line) => line.entry.is !== 'ended')) {
          tags.push(`gryphus.${entry.key}.${n}`);
        }
      }
    }
    return tags;
  }

  /** Lines of the queue of an attempt whose directory is gone. */
  linesWithoutRecord(key: AttemptKey): ReturnType<typeof liveLines> {
    const entry = this.#entries.get(key);
    return entry?.recordLost ? liveLines(entry) : [];
  }

  #entry(key: AttemptKey): ViewEntry {
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = newEntry(key);
      this.#entries.set(key, entry);
    }
    this.#dirty.add(entry);
    return entry;
  }

  #resubmitted(entry: ViewEntry, n: number, now: number): void {
    if (n > entry.submission) {
      entry.submission = n;
      Object.assign(entry, nothingKnown());
    }
    this.#adopt(entry, now);
    this.#watchQueue(entry, now);
  }

  /** Counts looks without it from now on, unless it is in the queue. */
  #watchQueue(entry: ViewEntry, now: number): void {
    if (entry.submission === 0 || presentLine(entry) !== undefined) {
      this.#missing.delete(entry);
      entry.looksWithout = 0;
    } else if (!this.#missing.has(entry)) {
      this.#missing.add(entry);
      entry.looksWithout = 0;
      entry.missingSince = now;
    }
  }

  #takeQueue(lines: SiteAnswer['lines'], full: boolean, now: number): void {
    const touched = new Set<ViewEntry>();
    this.#lookedAt = now;
    if (full) {
      this.#unclaimed.clear();
      for (const entry of this.#entries.values()) {
        if (entry.queue.size > 0) touched.add(entry);
        entry.queue.clear();
      }
    }
    // An element's tag does not name its attempt if the array's map is lost.
    let byId: Map<string | undefined, ViewEntry> | undefined;
    // A line whose tag changed has left under the old one and appeared under the new one.
    for (const { kind, rest } of [...lines.filter((l) => l.kind === '-'), ...lines.filter((l) => l.kind === '+')]) {
      const [tag = '', batchId = '', ...words] = rest.split(' ');
      if (!tag.startsWith('gryphus.') || batchId === '') continue;
      const line = { tag, batchId, message: words.join(' ') };
      const [, key, n] = TAG.exec(tag) ?? [];
      if (key === undefined) byId ??= new Map([...this.#entries.values()].map((each) => [each.batchId, each]));
      const entry = key === undefined ? byId?.get(batchId) : this.#entries.get(key as AttemptKey);
      if (entry === undefined) this.#unclaimed.keep(kind, line);
      else {
        this.#takeLine(entry, kind, n === undefined ? entry.submission : Number(n), line, now);
        touched.add(entry);
      }
    }
    for (const entry of this.#missing) {
      entry.looksWithout += 1;
      if (entry.looksWithout === 1) entry.missingSince = now;
      this.#dirty.add(entry);
    }
    for (const entry of touched) {
      this.#watchQueue(entry, now);
      this.#dirty.add(entry);
    }
  }

  #takeLine(entry: ViewEntry, kind: string, n: number, { tag, batchId, message }: UnclaimedLine, now: number): void {
    const copies = entry.queue.get(n) ?? new Map();
    if (kind === '+') {
      const state = this.#backend.queueEntry(message);
      const old = copies.get(batchId);
      copies.set(batchId, {
        tag,
        batchId,
        entry: state,
        since: old !== undefined && alike(old.entry, state) ? old.since : now,
      });
      entry.queue.set(n, copies);
      if (n === entry.submission && state.is === 'running') {
        entry.ending = state.ending ?? entry.ending;
        entry.limit = state.limit ?? entry.limit;
      }
    } else {
      copies.delete(batchId);
      if (copies.size === 0) entry.queue.delete(n);
    }
  }

  /** Processes queue lines that came before the attempt was known. */
  #adopt(entry: ViewEntry, now: number): void {
    for (let n = 1; n <= entry.submission; n++) {
      for (const line of this.#unclaimed.take(`gryphus.${entry.key}.${n}`)) this.#takeLine(entry, '+', n, line, now);
    }
  }

  #takeJob(rest: string, now: number, listed: Set<AttemptKey>): ViewEntry | undefined {
    const [key = '', n = '', flags = ''] = rest.split(' ');
    if (!parseAttemptKey(key) || !/^\d+$/.test(n)) return undefined;
    const entry = this.#entry(key as AttemptKey);
    listed.add(entry.key);
    entry.cancelled = flags.includes('c');
    entry.readAt = now;
    entry.recordLost = false;
    this.#resubmitted(entry, Number(n), now);
    return entry;
  }

  #takeDetail(entry: ViewEntry, kind: string, rest: string, now: number): void {
    if (kind === 'id') entry.batchId = this.#backend.idOf(rest) ?? entry.batchId;
    else if (kind === 'owner') this.#takeOwner(entry, rest, now);
    else if (kind === 'asks') this.#takeAsks(entry, rest, now);
    else if (kind === 'fenced') entry.fenced = rest === '' ? 'lost' : rest;
    else if (kind === 'refused') {
      const [status = '', message = ''] = rest.split(' ');
      entry.refused = { status: Number(status), message: percentDecode(message) };
    } else if (kind === 'exit') this.#takeExit(entry, rest, now);
  }

  #takeOwner(entry: ViewEntry, line: string, now: number): void {
    this.#ownedBy(entry, readOwner(line), now);
  }

  #ownedBy(entry: ViewEntry, owner: Owner, now: number): void {
    const before = entry.owner?.run;
    if (before !== undefined && before > owner.run) return;
    if (before !== undefined && before < owner.run) Object.assign(entry, runUnknown());
    if (before !== owner.run) entry.ownerSeenAt = now;
    entry.owner = owner;
  }

  #takeAsks(entry: ViewEntry, line: string, now: number): void {
    entry.asks = readOwner(line);
    entry.asksSeenAt = now;
  }

  #takeExit(entry: ViewEntry, line: string, now: number): void {
    const record = readExit(line);
    if (record === undefined) return;
    if (entry.exit === undefined) entry.exitSeenAt = now;
    entry.exit = record;
  }

  /**
   * `KEY.N.q|s|x|d LINE`; the letter of a later run is followed by its number. An event of an attempt or submission that
   * is no longer ours is only acknowledged.
   */
  #takeEvent(rest: string, now: number): string[] {
    const [name = '', ...words] = rest.split(' ');
    const found = /^(.+)\.(\d+)\.([qsxd])(\d*)$/.exec(name);
    if (!found) return [];
    const entry = this.#entries.get(found[1] as AttemptKey);
    if (entry === undefined || Number(found[2]) !== entry.submission) return [name];
    const line = words.join(' ');
    if (found[3] === 'q') this.#takeAsks(entry, line, now);
    else if (found[3] === 's') this.#takeOwner(entry, line, now);
    else if (found[3] === 'd') entry.second = readOwner(line);
    else {
      const run = Number(found[4]);
      if ((entry.owner?.run ?? -1) < run) this.#ownedBy(entry, { ...readOwner(line), run }, now);
      if (entry.owner?.run === run) this.#takeExit(entry, line, now);
    }
    this.#dirty.add(entry);
    return [name];
  }

  /** What is in the queue is kept although its directory is gone: it may run, and the directory may come back. */
  #dropUnlisted(listed: ReadonlySet<AttemptKey>, now: number): void {
    for (const entry of this.#entries.values()) {
      if (listed.has(entry.key)) continue;
      if (liveLines(entry).length === 0) this.#vanish(entry);
      else {
        entry.recordLost = true;
        this.#dirty.add(entry);
      }
    }
    const find = this.#promised.size === 0 ? undefined : this.#unclaimed.finder();
    for (const [key, id] of this.#promised) {
      const found = this.#entries.has(key) ? undefined : find?.(key, id);
      if (found === undefined || this.#backend.queueEntry(found.message).is === 'ended') continue;
      const entry = this.#entry(key);
      entry.submission = Number(TAG.exec(found.tag)?.[2] ?? 1);
      entry.batchId = found.batchId;
      entry.recordLost = true;
      this.#takeLine(entry, '+', entry.submission, found, now);
      this.#unclaimed.keep('-', found);
    }
    this.#promised = new Map();
  }

  #vanish(entry: ViewEntry): void {
    this.forget(entry.key);
    this.#vanished += 1;
  }

  /** One answer without it is not believed, since the batch system may show a new job late. */
  #hasLeft(entry: ViewEntry, now: number): boolean {
    if (liveLines(entry).length > 0) return false;
    const { lost } = this.#backend.patience;
    return presentLine(entry) !== undefined || (entry.looksWithout >= 2 && now - entry.missingSince >= lost);
  }
}
