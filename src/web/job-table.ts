import type { EventWithCursor, Gryphus, JobId } from '../index.ts';
import { parseJobId } from '../job/ids.ts';
import { LIFE } from '../job/life.ts';
import type { Hub } from './hub.ts';
import { filterOf } from './filter.ts';
import { pageById } from './id-page.ts';
import { haystack, type Row, ROW_ATTRIBUTES, rowOf } from './row.ts';

/** Without a viewer for this long, the table is given up; milliseconds. */
const FORGET_MS = 120_000;
/** How many jobs one look at the queue names. */
const AT_ONCE = 2000;
/** How long the answer of a constraint holds although jobs change; milliseconds. */
const CONSTRAINT_MS = 2000;

export const SORTS = [
  'id',
  'state',
  'owner',
  'batch',
  'command',
  'site',
  'host',
  'submitted',
  'since',
  'runtime',
  'memory',
  'prio',
] as const;
export type Sort = (typeof SORTS)[number];

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

interface Ordered {
  readonly key: string;
  readonly version: number;
  readonly rows: readonly Row[];
}

/**
 * The rows of all jobs in the queue, kept up to date by events while somebody looks at them: a page of the table costs no
 * walk of the queue.
 */
export class JobTable {
  readonly #gryphus: Gryphus;
  readonly #stop: () => void;
  #rows: Map<string, Row> | undefined;
  #loading: Promise<Map<string, Row>> | undefined;
  #dirty = new Set<string>();
  #dirtyClusters = new Set<number>();
  #version = 0;
  #ordered: Ordered[] = [];
  #constraint:
    | { readonly text: string; readonly at: number; readonly version: number; readonly ids: Set<string> }
    | undefined;
  #seen = 0;
  #updating: Promise<void> = Promise.resolve();

  constructor(gryphus: Gryphus, hub: Hub) {
    this.#gryphus = gryphus;
    this.#stop = hub.listen((events) => this.#take(events));
  }

  close(): void {
    this.#stop();
  }

  async page(wish: TableWish, now = Date.now()): Promise<TablePage> {
    // What most people look at first takes no walk of the queue.
    const byId = wish.sort === 'id' && wish.box.trim() === '' && !this.#rows;
    const page = byId ? await pageById(this.#gryphus, wish) : undefined;
    if (page) return page;
    const rows = await this.#current(now);
    const ordered = await this.#order(rows, wish, now);
    return { found: ordered.length, all: rows.size, rows: ordered.slice(wish.offset, wish.offset + wish.limit) };
  }

  /** All rows that fit the box. */
  async matching(box: string, now = Date.now()): Promise<readonly Row[]> {
    const rows = await this.#current(now);
    return this.#order(rows, { box, sort: 'id', descending: false }, now);
  }

  async #current(now: number): Promise<Map<string, Row>> {
    this.#seen = now;
    this.#rows ??= await (this.#loading ??= this.#load());
    const rows = this.#rows;
    const updating = this.#updating.then(() => this.#update(rows));
    this.#updating = updating.catch(() => undefined);
    try {
      await updating;
    } catch (thrown) {
      // What had changed is no longer known: everything is read anew.
      if (this.#rows === rows) this.#forget();
      throw thrown;
    }
    return rows;
  }

  async #load(): Promise<Map<string, Row>> {
    try {
      const rows = new Map<string, Row>();
      for await (const jobs of this.#gryphus.queryChunks({ attributes: ROW_ATTRIBUTES }))
        for (const job of jobs) rows.set(nameOf(job.id), rowOf(job));
      return rows;
    } finally {
      this.#loading = undefined;
    }
  }

  #take(events: readonly EventWithCursor[]): void {
    if (!this.#rows && !this.#loading) return;
    if (Date.now() - this.#seen > FORGET_MS) {
      this.#forget();
      return;
    }
    for (const event of events) {
      if (event.type === 'retired') for (const job of event.jobs) this.#dirty.add(job);
      else if ('job' in event && event.job !== undefined) this.#dirty.add(event.job);
      else if ('cluster' in event) this.#dirtyClusters.add(event.cluster);
    }
  }

  #forget(): void {
    this.#rows = undefined;
    this.#ordered = [];
    this.#constraint = undefined;
    this.#dirty.clear();
    this.#dirtyClusters.clear();
  }

  async #update(rows: Map<string, Row>): Promise<void> {
    if (this.#dirty.size === 0 && this.#dirtyClusters.size === 0) return;
    const [names, clusters] = [[...this.#dirty], [...this.#dirtyClusters]];
    this.#dirty = new Set();
    this.#dirtyClusters = new Set();
    this.#version += 1;
    if (clusters.length > 0)
      for await (const jobs of this.#gryphus.queryChunks({ clusters, attributes: ROW_ATTRIBUTES }))
        for (const job of jobs) rows.set(nameOf(job.id), rowOf(job));
    for (let from = 0; from < names.length; from += AT_ONCE) {
      const some = names.slice(from, from + AT_ONCE);
      const ids = some.map(parseJobId).filter((id) => id !== undefined);
      const gone = new Set(some);
      for await (const jobs of this.#gryphus.queryChunks({ ids, attributes: ROW_ATTRIBUTES }))
        for (const job of jobs) {
          const name = nameOf(job.id);
          rows.set(name, rowOf(job));
          gone.delete(name);
        }
      for (const name of gone) rows.delete(name);
    }
  }

  async #order(
    rows: Map<string, Row>,
    { box, sort, descending }: Pick<TableWish, 'box' | 'sort' | 'descending'>,
    now: number,
  ): Promise<readonly Row[]> {
    const key = JSON.stringify([box, sort, descending]);
    const known = this.#ordered.find((one) => one.key === key && one.version === this.#version);
    if (known) return known.rows;
    const fits = await this.#fits(box, now);
    const chosen = [...rows.values()].filter(fits);
    chosen.sort(comparison(sort, now));
    if (descending) chosen.reverse();
    this.#ordered = [{ key, version: this.#version, rows: chosen }, ...this.#ordered.slice(0, 3)];
    return chosen;
  }

  async #fits(box: string, now: number): Promise<(row: Row) => boolean> {
    const filter = filterOf(box);
    if (filter.is === 'words') return (row) => filter.fits(row, haystack(row));
    const old = this.#constraint;
    const good = old?.text === filter.text && (old.version === this.#version || now - old.at < CONSTRAINT_MS);
    if (!good) {
      const ids = new Set<string>();
      const version = this.#version;
      for await (const jobs of this.#gryphus.queryChunks({ constraint: filter.text, attributes: [] }))
        for (const { id } of jobs) ids.add(nameOf(id));
      this.#constraint = { text: filter.text, at: now, version, ids };
    }
    const ids = this.#constraint?.ids;
    return (row) => ids?.has(nameOf(row.id)) === true;
  }
}

export function nameOf({ cluster, proc }: JobId): string {
  return `${cluster}.${proc}`;
}

/** Seconds that the job has run, with its current run. `now`: Unix milliseconds. */
export function runtimeOf({ started, ran }: Row, now: number): number {
  return ran + (started === undefined ? 0 : Math.max(0, now / 1000 - started));
}

function comparison(sort: Sort, now: number): (a: Row, b: Row) => number {
  const byId = (a: Row, b: Row) => a.id.cluster - b.id.cluster || a.id.proc - b.id.proc;
  const text = (of: (row: Row) => string) => (a: Row, b: Row) => {
    const [x, y] = [of(a), of(b)];
    return x < y ? -1 : x > y ? 1 : byId(a, b);
  };
  const number = (of: (row: Row) => number) => (a: Row, b: Row) => of(a) - of(b) || byId(a, b);
  switch (sort) {
    case 'id':
      return byId;
    case 'state':
      return text((row) => LIFE[row.state].shows);
    case 'owner':
      return text((row) => row.owner);
    case 'batch':
      return text((row) => row.batch);
    case 'command':
      return text((row) => row.command);
    case 'site':
      return text((row) => row.site);
    case 'host':
      return text((row) => row.host);
    case 'submitted':
      return number((row) => row.submitted);
    case 'since':
      return number((row) => row.since);
    case 'runtime':
      return number((row) => runtimeOf(row, now));
    case 'memory':
      return number((row) => row.memory ?? 0);
    case 'prio':
      return number((row) => row.prio);
  }
}
