import type { EventWithCursor, Gryphus, JobId } from '../index.ts';
import { IdSet } from '../job/id-set.ts';
import { parseJobId } from '../job/ids.ts';
import { filterOf } from './filter.ts';
import type { Hub } from './hub.ts';
import { pageById } from './id-page.ts';
import { byId, fitting, inOrder, Ordered, type Sort } from './order.ts';
import { haystack, type Row, ROW_ATTRIBUTES, rowOf } from './row.ts';

/** When nobody has asked for this long, the table is given up; milliseconds. */
const FORGET_MS = 600_000;
/** How many jobs one look at the queue names. */
const AT_ONCE = 2000;
/** Lists that are kept in order, and how long one is after it was last asked for; milliseconds. */
const LISTS = 4;
const LIST_MS = 60_000;
/** A list that changes as time passes is made anew when it is this old, or so many times what making it took; milliseconds. */
const AGED_MS = 2000;
const AGED_TIMES = 20;
/** A constraint whose value may change although no job does. */
const TIMED = /\b(?:time|currenttime|random)\b/i;

export interface TableWish {
  /** Words, or a ClassAd constraint. */
  readonly box: string;
  readonly sort: Sort;
  readonly descending: boolean;
  readonly offset: number;
  readonly limit: number;
}

export interface TablePage {
  /** How many rows fit the box, and how many there are. */
  readonly found: number;
  readonly all: number;
  readonly rows: readonly Row[];
}

interface List {
  readonly key: string;
  readonly box: string;
  readonly ordered: Ordered;
  readonly constraint: string | undefined;
  /** For words; of a constraint the queue is asked. */
  readonly fits: (row: Row) => boolean;
  /** Until when it is good, and when it was last asked for; Unix milliseconds. */
  readonly until: number;
  asked: number;
}

/** What was read of the queue, and the lists that were made of it. */
interface Known {
  readonly rows: Map<number, Map<number, Row>>;
  readonly all: Ordered;
  lists: readonly List[];
}

/**
 * The rows of all jobs in the queue, kept up to date by events while somebody looks at them: a page of the table costs no
 * walk of the queue, and a change of some jobs no other sort.
 */
export class JobTable {
  readonly #gryphus: Gryphus;
  readonly #stop: () => void;
  #known: Known | undefined;
  #loading = false;
  #dirty = new Set<string>();
  #dirtyClusters = new Set<number>();
  #forgetting: NodeJS.Timeout | undefined;
  /** One request after the other reads, and waits for what is read. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(gryphus: Gryphus, hub: Hub) {
    this.#gryphus = gryphus;
    this.#stop = hub.listen((events) => this.#take(events));
  }

  close(): void {
    this.#stop();
    clearTimeout(this.#forgetting);
  }

  async page(wish: TableWish, now = Date.now()): Promise<TablePage> {
    // What most people look at first takes no walk of the queue.
    const page = wish.sort === 'id' && wish.box.trim() === '' ? await pageById(this.#gryphus, wish) : undefined;
    if (page) return page;
    return this.#inTurn(async () => {
      const known = await this.#current();
      const { rows } = await this.#list(known, wish, now);
      return {
        found: rows.length,
        all: known.all.rows.length,
        rows: rows.slice(wish.offset, wish.offset + wish.limit),
      };
    });
  }

  /** All rows that fit the box. */
  matching(box: string, now = Date.now()): Promise<readonly Row[]> {
    const wish = { box, sort: 'id', descending: false } as const;
    return this.#inTurn(async () => (await this.#list(await this.#current(), wish, now)).rows);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #current(): Promise<Known> {
    clearTimeout(this.#forgetting);
    this.#forgetting = setTimeout(() => this.#forget(), FORGET_MS).unref();
    this.#known ??= await this.#load();
    const known = this.#known;
    try {
      await this.#update(known);
    } catch (thrown) {
      // What had changed is no longer known: everything is read anew.
      this.#forget();
      throw thrown;
    }
    return known;
  }

  async #load(): Promise<Known> {
    this.#loading = true;
    try {
      const rows: Known['rows'] = new Map();
      const all: Row[] = [];
      for await (const jobs of this.#gryphus.queryChunks({ attributes: ROW_ATTRIBUTES }))
        for (const job of jobs) {
          const row = rowOf(job);
          put(rows, row);
          all.push(row);
        }
      return { rows, all: new Ordered(all, 'id', false, 0), lists: [] };
    } finally {
      this.#loading = false;
    }
  }

  #take(events: readonly EventWithCursor[]): void {
    if (!this.#known && !this.#loading) return;
    for (const event of events) {
      if (event.type === 'retired') for (const job of event.jobs) this.#dirty.add(job);
      else if ('job' in event && event.job !== undefined) this.#dirty.add(event.job);
      else if ('cluster' in event) this.#dirtyClusters.add(event.cluster);
    }
  }

  #forget(): void {
    this.#known = undefined;
    this.#dirty.clear();
    this.#dirtyClusters.clear();
  }

  async #update(known: Known): Promise<void> {
    const now = Date.now();
    known.lists = known.lists.filter(({ asked, until }) => now - asked < LIST_MS && now < until);
    if (this.#dirty.size === 0 && this.#dirtyClusters.size === 0) return;
    const [names, clusters] = [[...this.#dirty], [...this.#dirtyClusters]];
    this.#dirty = new Set();
    this.#dirtyClusters = new Set();
    if (clusters.length > 0)
      for await (const jobs of this.#gryphus.queryChunks({ clusters, attributes: ROW_ATTRIBUTES }))
        await this.#change(known, [], jobs.map(rowOf));
    for (let from = 0; from < names.length; from += AT_ONCE) {
      const ids = names.slice(from, from + AT_ONCE).flatMap((name) => parseJobId(name) ?? []);
      const rows: Row[] = [];
      for await (const jobs of this.#gryphus.queryChunks({ ids, attributes: ROW_ATTRIBUTES }))
        rows.push(...jobs.map(rowOf));
      await this.#change(known, ids, rows);
    }
  }

  /** `rows` are new or changed; of `ids`, those without a row are gone. */
  async #change({ rows: kept, all, lists }: Known, ids: readonly JobId[], rows: readonly Row[]): Promise<void> {
    const there = new IdSet();
    const changes = rows.map((after) => {
      there.add(after.id);
      return { before: put(kept, after), after };
    });
    const gone = ids.filter((id) => !there.has(id)).map((id) => take(kept, id));
    for (const { before, after } of changes) all.change(before, after);
    for (const before of gone) all.change(before, undefined);
    for (const { ordered, constraint, fits } of lists) {
      const meets =
        constraint === undefined
          ? fits
          : setOf(
              await this.#meeting(
                constraint,
                rows.map(({ id }) => id),
              ),
            );
      for (const { before, after } of changes) ordered.change(before, meets(after) ? after : undefined);
      for (const before of gone) ordered.change(before, undefined);
    }
  }

  /** Which jobs of the queue, or of these, meet a constraint. */
  async #meeting(constraint: string, ids?: readonly JobId[]): Promise<IdSet> {
    const found = new IdSet();
    for await (const jobs of this.#gryphus.queryChunks({ ...(ids ? { ids } : {}), constraint, attributes: [] }))
      for (const { id } of jobs) found.add(id);
    return found;
  }

  async #list(
    known: Known,
    { box, sort, descending }: Pick<TableWish, 'box' | 'sort' | 'descending'>,
    now: number,
  ): Promise<Ordered> {
    const key = JSON.stringify([box.trim(), sort, descending]);
    const old = known.lists.find((list) => list.key === key);
    if (old) {
      old.asked = now;
      return old.ordered;
    }
    const began = performance.now();
    const text = box.trim();
    const filter = filterOf(text);
    const constraint = filter.is === 'constraint' ? filter.text : undefined;
    const words = (row: Row) => filter.is === 'words' && filter.fits(row, haystack(row));
    // In another order they are the same.
    const alike = known.lists.find((list) => list.box === text);
    const chosen =
      text === ''
        ? known.all.rows
        : alike
          ? alike.ordered.rows.toSorted((a, b) => byId(a.id, b.id))
          : await fitting(known.all.rows, constraint === undefined ? words : setOf(await this.#meeting(constraint)));
    const ordered = new Ordered(inOrder(chosen, sort, descending, now), sort, descending, now);
    const aging = sort === 'runtime' || (constraint !== undefined && TIMED.test(constraint));
    const good = now + (aging ? Math.max(AGED_MS, AGED_TIMES * (performance.now() - began)) : Number.POSITIVE_INFINITY);
    const until = TIMED.test(constraint ?? '') ? Math.min(good, alike?.until ?? good) : good;
    const list = { key, box: text, ordered, constraint, fits: words, until, asked: now };
    known.lists = [list, ...known.lists.slice(0, LISTS - 1)];
    return ordered;
  }
}

export function nameOf({ cluster, proc }: JobId): string {
  return `${cluster}.${proc}`;
}

function setOf(ids: IdSet): (row: Row) => boolean {
  return ({ id }) => ids.has(id);
}

/** The row that it replaces. */
function put(rows: Known['rows'], row: Row): Row | undefined {
  const { cluster, proc } = row.id;
  let procs = rows.get(cluster);
  if (!procs) rows.set(cluster, (procs = new Map()));
  const before = procs.get(proc);
  procs.set(proc, row);
  return before;
}

function take(rows: Known['rows'], { cluster, proc }: JobId): Row | undefined {
  const procs = rows.get(cluster);
  const row = procs?.get(proc);
  procs?.delete(proc);
  if (procs?.size === 0) rows.delete(cluster);
  return row;
}
