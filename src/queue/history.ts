import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { asError, GryphusError } from '../errors.ts';
import { Attrs } from '../job/attrs.ts';
import { IdSet } from '../job/id-set.ts';
import { formatJobId, type JobId, parseJobId } from '../job/ids.ts';
import { isEnd } from '../job/life.ts';
import { ensurePrivateDir } from '../util/private-file.ts';
import type { HistoryKeep, HistoryQuery, HistoryRecord, LookWish, History as Reading, SeenJob } from './api.ts';
import { type ClusterLine, HistoryFile, type JobLine } from './history-file.ts';
import { type HistoryName, HistoryRanges } from './history-ranges.ts';
import { HistoryReading, jobLine } from './history-reading.ts';
import type { HistoryEntry } from './history-snapshot.ts';
import { getOpened, namesOf, type Opened } from './read.ts';
import { ownOf, ownText, plainString } from './record.ts';
import type { QueueContext } from './context.ts';

interface Mark {
  readonly file: string;
  /** Bytes. */
  readonly size: number;
}

/** Jobs in one write. */
const CHUNK = 2000;
/**
 * `2026-11.jsonl`, then `2026-11-0002.jsonl` and so on. A name is never reused, because clusters remember which file
 * has their ad.
 */
const NAME = /^((\d{4}-\d{2})(?:-(\d{4,}))?\.jsonl)(\.gz)?$/;
/** An archive that a crash interrupted. */
const TORN = /\.gz\.[0-9a-f]+\.new$/;
/** Maximum number of jobs in one file; the last write may exceed it. */
const IN_A_FILE = 10_000;

/**
 * The history: one or more files for each month, of which the full ones are compressed. A job is on disk there before it leaves the queue, and is written
 * exactly once, even after a crash.
 */
export class History implements Reading {
  readonly #context: QueueContext;
  readonly #dir: string;
  readonly #ranges: HistoryRanges;
  #turn: Promise<unknown> = Promise.resolve();
  #inAFile = IN_A_FILE;

  constructor(context: QueueContext, stateDir: string) {
    this.#context = context;
    this.#dir = join(stateDir, 'history');
    this.#ranges = new HistoryRanges(this.#dir);
  }

  retire(ids: readonly JobId[]): Promise<number> {
    return this.#next(() => this.#retire(ids));
  }

  async *read(query: HistoryQuery = {}): AsyncIterable<HistoryRecord> {
    const { or = [], but, once, limit, ...first } = query;
    const wishes = [first, ...or];
    const placed = placedBy(wishes);
    const wished = wishes.map(wishedBy);
    const met = new IdSet();
    let left = limit ?? Number.POSITIVE_INFINITY;
    const wanted = (id: JobId): boolean => placed(id) && !but?.has(id) && (!once || met.add(id));
    const mayHave = this.#ranges.reader(wishes);
    for (const one of this.#names().reverse()) {
      if (!mayHave(one)) continue;
      const { name } = one;
      const reading = left > 0 ? HistoryReading.open(join(this.#dir, name)) : undefined;
      try {
        for (const entry of reading?.snapshot.entries((cluster, proc) => wanted({ cluster, proc })) ?? []) {
          const job = reading?.record(entry);
          if (!job || !wished.some((one) => one(job))) continue;
          yield job;
          left -= 1;
          if (left <= 0) return;
        }
      } finally {
        reading?.close();
      }
    }
  }

  /** Deletes the oldest files that `keep` does not require, and archives those that are full. Only for the Scheduler. */
  async prune(keep: HistoryKeep): Promise<void> {
    await this.#next(() => this.#prune(keep));
    // Jobs that retire meanwhile wait for one file at most.
    for (const { name, archived } of this.#names().slice(0, -1))
      if (!archived) await this.#next(() => this.#archive(name));
  }

  /** Deletes what was written after the queue's mark: the queue is an older copy, and has those jobs itself. */
  cut(): Promise<void> {
    return this.#next(async () => {
      const names = this.#names();
      const newest = names.at(-1);
      if (newest === undefined) return;
      const mark = await this.#mark(newest.name, this.#file(newest));
      const at = names.findIndex(({ name }) => name === mark.file);
      if (at < 0) return;
      for (const later of names.slice(at + 1)) this.#file(later).delete();
      this.#file({ name: mark.file }).cut(mark.size);
    });
  }

  async #prune({ jobs, seconds, recent }: HistoryKeep): Promise<void> {
    this.#inAFile = Math.max(1, Math.min(IN_A_FILE, Math.floor(jobs / 8)));
    if (existsSync(this.#dir))
      for (const entry of readdirSync(this.#dir)) if (TORN.test(entry)) rmSync(join(this.#dir, entry), { force: true });
    const ranges = this.#ranges.read();
    // The newest file is still written to.
    const [newest, ...others] = this.#names().reverse();
    let newer = newest ? this.#file(newest).count() : 0;
    let kept = 0;
    for (const one of others) {
      if (newer >= jobs) break;
      newer += ranges.get(one.name)?.jobs ?? this.#file(one).count();
      kept += 1;
    }
    const now = this.#context.now() / 1000;
    const isOpen = kept < others.length ? await this.#mayBeOpen() : () => false;
    for (const [i, one] of [...others.entries()].reverse()) {
      const last = lastRetired(this.#file(one));
      if (last >= now - seconds) {
        // So are all later ones.
        if (i < kept || last > now - recent) break;
        if (isOpen(one)) continue;
      }
      this.#file(one).delete();
    }
  }

  /** Tells of a full file whether it may have jobs of a cluster that is still in the queue. */
  async #mayBeOpen(): Promise<(file: HistoryName) => boolean> {
    const ids = await this.#context.db.run((redis) => redis.zrange(`${this.#context.db.prefix}clusters`, '0', '-1'));
    const clusters = ids.map(Number);
    const ranges = this.#ranges.read();
    return ({ name }) => {
      const range = ranges.get(name);
      return (
        range !== undefined && (clusters.find((id) => id >= range.first.cluster) ?? Infinity) <= range.last.cluster
      );
    };
  }

  async #archive(name: string): Promise<void> {
    const file = this.#file({ name });
    // A crash may have come between the archive and the removal of the file.
    if (file.archived) return file.deletePlain();
    if (file.count() === 0 && file.size() === 0) return;
    if (this.#ranges.read().get(name)?.jobs !== file.count()) this.#ranges.note(name);
    await file.archive();
  }

  /** Oldest first. */
  #names(): HistoryName[] {
    if (!existsSync(this.#dir)) return [];
    const found = new Map<string, HistoryName & { readonly month: string; readonly number: number }>();
    for (const entry of readdirSync(this.#dir)) {
      const [, name, month = '', number = '1', ending] = NAME.exec(entry) ?? [];
      if (name === undefined) continue;
      const archived = ending !== undefined && !found.has(name);
      found.set(name, { name, month, number: Number(number), archived });
    }
    return [...found.values()].sort((a, b) => (a.month < b.month ? -1 : a.month > b.month ? 1 : a.number - b.number));
  }

  #file({ name }: Pick<HistoryName, 'name'>): HistoryFile {
    return new HistoryFile(join(this.#dir, name));
  }

  /** Runs after everything that was begun before: the files have one writer. */
  #next<T>(work: () => T | Promise<T>): Promise<T> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  /** The file that is currently written to. */
  #current(): string {
    const month = new Date(this.#context.now()).toISOString().slice(0, 7);
    const last = this.#names()
      .filter(({ name }) => name.startsWith(month))
      .at(-1);
    if (last === undefined) return `${month}.jsonl`;
    if (!last.archived && this.#file(last).count() < this.#inAFile) return last.name;
    return `${month}-${String(Number(NAME.exec(last.name)?.[3] ?? 1) + 1).padStart(4, '0')}.jsonl`;
  }

  async #retire(ids: readonly JobId[]): Promise<number> {
    if (ids.length === 0) return 0;
    ensurePrivateDir(this.#dir);
    const name = this.#current();
    const file = new HistoryFile(join(this.#dir, name));
    const before = this.#names().at(-1)?.name;
    if (before !== undefined && before !== name && file.size() === 0) this.#ranges.note(before);
    file.repair();
    const mark = await this.#mark(name, file);
    const written = this.#writtenSince(mark, name, file);
    // Those first: once the mark has moved past their lines, nobody would know that they are written.
    const found = [...written.keys()].flatMap((key) => parseJobId(key) ?? []);
    const each = [...new Map([...found, ...ids].map((id) => [formatJobId(id), id])).values()];
    let gone = 0;
    for (let from = 0; from < each.length; from += CHUNK) {
      const jobs = (await getOpened(this.#context, each.slice(from, from + CHUNK))).filter(mayLeave);
      if (jobs.length === 0) continue;
      const names = await namesOf(this.#context, jobs);
      const fresh = jobs.filter(
        (job) => !isLine(job, names.get(job.stored.site) ?? '', written.get(formatJobId(job.id))),
      );
      const size = await this.#write(name, file, fresh);
      const args = [...procsOf(jobs)].flatMap(([cluster, procs]) => [cluster, procs.length, ...procs]);
      const whole = from + CHUNK >= found.length ? [name, size] : [mark.file, mark.size];
      gone += Number(await this.#context.db.script('retire', [this.#context.now(), ...whole, ...args]));
    }
    return gone;
  }

  /** The file and its size up to which every job written has left the queue. */
  async #mark(name: string, file: HistoryFile): Promise<Mark> {
    const key = `${this.#context.db.prefix}history`;
    const [known, size] = await this.#context.db.run((redis) => redis.hmget(key, 'file', 'size'));
    if (known) return { file: known, size: Number(size) };
    const mark = { file: name, size: file.size() };
    await this.#context.db.run((redis) => redis.hset(key, mark));
    return mark;
  }

  /** Lines of jobs behind the mark: a retirement was interrupted between the file and the queue. */
  #writtenSince(mark: Mark, name: string, file: HistoryFile): ReadonlyMap<string, JobLine> {
    const tails =
      mark.file === name
        ? [{ file, from: mark.size }]
        : [
            { file: new HistoryFile(join(this.#dir, mark.file)), from: mark.size },
            { file, from: 0 },
          ];
    const written = new Map<string, JobLine>();
    for (const tail of tails) {
      tail.file.look((snapshot) => {
        for (const { text } of snapshot.lines(tail.from)) {
          if (!text.startsWith('{"j":')) continue;
          // A job whose line is damaged is still in the queue, and is written again.
          const line = jobLine(text);
          if (line) written.set(line.j, line);
        }
      }, undefined);
    }
    return written;
  }

  /** Writes the jobs. Returns the file's size afterwards. */
  async #write(name: string, file: HistoryFile, jobs: readonly Opened[]): Promise<number> {
    let at = file.size();
    if (jobs.length === 0) return at;
    const lines: Buffer[] = [];
    const entries: HistoryEntry[] = [];
    const places = await this.#clusterPlaces(name, jobs);
    const fresh = new Map<number, string>();
    const add = (line: string): readonly [number, number] => {
      const bytes = Buffer.from(`${line}\n`);
      lines.push(bytes);
      at += bytes.length;
      return [at - bytes.length, bytes.length];
    };
    const names = await namesOf(this.#context, jobs);
    const retired = Math.floor(this.#context.now() / 1000);
    for (const { id, stored, cluster } of jobs) {
      let place = places.get(id.cluster);
      if (!place) {
        place = add(JSON.stringify({ c: id.cluster, ad: cluster.own } satisfies ClusterLine));
        places.set(id.cluster, place);
        fresh.set(id.cluster, `${name}|${place.join('|')}`);
      }
      const own = ownText(id, stored, names.get(stored.site) ?? '');
      const [offset, length] = add(
        `{"j":"${formatJobId(id)}","c":[${place.join(',')}],"s":"${stored.state}","t":${retired},"own":${own}}`,
      );
      entries.push({ ...id, offset, length });
    }
    try {
      file.append(lines);
      file.index(entries);
    } catch (thrown) {
      if (!/ENOSPC|EDQUOT/.test(asError(thrown).message)) throw thrown;
      throw new GryphusError('disk-full', `The history ${file.path} cannot be extended: no space left on the disk.`, {
        cause: thrown,
        suggestions: ['Free some space there; the jobs stay in the queue until then.'],
      });
    }
    await this.#context.db.run(async (redis) => {
      const pipeline = redis.pipeline();
      for (const [cluster, place] of fresh) pipeline.hset(`${this.#context.db.prefix}c:${cluster}`, 'hist', place);
      await pipeline.exec();
    });
    return at;
  }

  /** Where the file already has the ads of these jobs' clusters. */
  async #clusterPlaces(name: string, jobs: readonly Opened[]): Promise<Map<number, readonly [number, number]>> {
    const places = new Map<number, readonly [number, number]>();
    for (const cluster of new Set(jobs.map(({ id }) => id.cluster))) {
      const known = await this.#context.db.run((redis) => redis.hget(`${this.#context.db.prefix}c:${cluster}`, 'hist'));
      const [file, offset, length] = known?.split('|') ?? [];
      if (file === name) places.set(cluster, [Number(offset), Number(length)]);
    }
    return places;
  }
}

function procsOf(jobs: readonly Opened[]): ReadonlyMap<number, readonly number[]> {
  const procs = new Map<number, number[]>();
  for (const { id } of jobs) {
    const some = procs.get(id.cluster);
    if (some) some.push(id.proc);
    else procs.set(id.cluster, [id.proc]);
  }
  return procs;
}

/** Whether the job has ended, and does not stay in the queue. */
function mayLeave({ id, stored, cluster }: Opened): boolean {
  if (!isEnd(stored.state)) return false;
  const mayStay = cluster.has('LeaveJobInQueue') || /"leavejobinqueue":/i.test(stored.own);
  if (!mayStay) return true;
  const attrs = new Attrs(ownOf(id, stored, ''), cluster);
  return attrs.get('LeaveJobInQueue')?.trim().toLowerCase() !== 'true';
}

/**
 * Whether the line describes this job. If the queue was restored from an older copy, the file may have another job with
 * the same id.
 */
function isLine({ id, stored }: Opened, site: string, line: JobLine | undefined): boolean {
  if (line?.s !== stored.state) return false;
  const own = ownOf(id, stored, site);
  const names = Object.keys(line.own);
  return names.length === Object.keys(own).length && names.every((name) => line.own[name] === own[name]);
}

/** Unix seconds; 0 if the file has no jobs. */
function lastRetired(file: HistoryFile): number {
  return file.look((snapshot) => {
    for (const { offset, length } of snapshot.entries()) {
      const line = jobLine(snapshot.line(offset, length));
      if (line) return line.t;
    }
    return 0;
  }, 0);
}

/** Selects jobs by id alone; fast, because it is called for every job in the history. */
function placedBy(wishes: readonly LookWish[]): (id: JobId) => boolean {
  if (wishes.some(({ ids, clusters }) => ids === undefined && clusters === undefined)) return () => true;
  const whole = new Set(wishes.flatMap(({ clusters }) => clusters ?? []));
  const single = new IdSet();
  for (const { ids } of wishes) for (const id of ids ?? []) single.add(id);
  return (id) => whole.has(id.cluster) || single.has(id);
}

function wishedBy(wish: LookWish): (job: SeenJob) => boolean {
  const placed = placedBy([wish]);
  const { owner, where } = wish;
  return (job) =>
    placed(job.id) && (owner === undefined || plainString(job.attrs.get('Owner')) === owner) && (!where || where(job));
}
