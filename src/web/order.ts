import { LIFE } from '../job/life.ts';
import type { JobId } from '../job/ids.ts';
import type { Row } from './row.ts';

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

/** Rows looked at before others have their turn. */
const SLICE = 20_000;

/** Rows in an order that is kept while they change: a change costs one pass over the list, not another sort. */
export class Ordered {
  #rows: readonly Row[];
  readonly #compare: (a: Row, b: Row) => number;
  readonly #gone = new Set<Row>();
  readonly #fresh = new Set<Row>();

  /** `rows` are in this order. */
  constructor(rows: readonly Row[], sort: Sort, descending: boolean, now: number) {
    this.#rows = rows;
    this.#compare = comparison(sort, descending, now);
  }

  /** One row in the place of another; `undefined`: there was none, or it no longer belongs here. */
  change(before: Row | undefined, after: Row | undefined): void {
    if (before && !this.#fresh.delete(before)) this.#gone.add(before);
    if (after) this.#fresh.add(after);
  }

  get rows(): readonly Row[] {
    if (this.#gone.size === 0 && this.#fresh.size === 0) return this.#rows;
    const fresh = [...this.#fresh].sort(this.#compare);
    const rows: Row[] = [];
    let next = 0;
    for (const row of this.#rows) {
      if (this.#gone.has(row)) continue;
      for (let one = fresh[next]; one && this.#compare(one, row) < 0; one = fresh[++next]) rows.push(one);
      rows.push(row);
    }
    for (let one = fresh[next]; one; one = fresh[++next]) rows.push(one);
    this.#gone.clear();
    this.#fresh.clear();
    this.#rows = rows;
    return rows;
  }
}

/** Those that fit. Others have their turn meanwhile. */
export async function fitting(rows: readonly Row[], fits: (row: Row) => boolean): Promise<readonly Row[]> {
  const found: Row[] = [];
  for (let from = 0; from < rows.length; from += SLICE) {
    if (from > 0) await new Promise((done) => setImmediate(done));
    for (const row of rows.slice(from, from + SLICE)) if (fits(row)) found.push(row);
  }
  return found;
}

/** Rows that are in the order of their ids, in another. Only the keys that differ are sorted: most rows share theirs. */
export function inOrder(byId: readonly Row[], sort: Sort, descending: boolean, now: number): readonly Row[] {
  if (sort === 'id') return descending ? byId.toReversed() : byId;
  const key = keyOf(sort, now);
  const groups = new Map<string | number, Row[]>();
  for (const row of byId) {
    const of = key(row);
    const group = groups.get(of);
    if (group) group.push(row);
    else groups.set(of, [row]);
  }
  const rows: Row[] = [];
  for (const of of [...groups.keys()].sort(compareKeys)) for (const row of groups.get(of) ?? []) rows.push(row);
  return descending ? rows.reverse() : rows;
}

/** Seconds that the job has run, with its current run. `now`: Unix milliseconds. */
export function runtimeOf({ started, ran }: Row, now: number): number {
  return ran + (started === undefined ? 0 : Math.max(0, now / 1000 - started));
}

export function byId(a: JobId, b: JobId): number {
  return a.cluster - b.cluster || a.proc - b.proc;
}

function comparison(sort: Sort, descending: boolean, now: number): (a: Row, b: Row) => number {
  const key = sort === 'id' ? () => 0 : keyOf(sort, now);
  const sign = descending ? -1 : 1;
  return (a, b) => sign * (compareKeys(key(a), key(b)) || byId(a.id, b.id));
}

/** Keys of one order are all texts or all numbers. */
function compareKeys(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function keyOf(sort: Exclude<Sort, 'id'>, now: number): (row: Row) => string | number {
  switch (sort) {
    case 'state':
      return (row) => LIFE[row.state].shows;
    case 'runtime':
      return (row) => runtimeOf(row, now);
    case 'memory':
      return (row) => row.memory ?? 0;
    case 'owner':
    case 'batch':
    case 'command':
    case 'site':
    case 'host':
    case 'submitted':
    case 'since':
    case 'prio':
      return (row) => row[sort];
  }
}
