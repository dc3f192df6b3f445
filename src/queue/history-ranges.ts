import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JobId } from '../job/ids.ts';
import type { LookWish } from './history-types.ts';
import { HistoryFile } from './history-file.ts';

/** The lowest and the highest id of some jobs. */
interface Range {
  readonly first: JobId;
  readonly last: JobId;
}

/** A file of the history. */
export interface HistoryName {
  /** Also if it is archived, under this name with `.gz` at its end. */
  readonly name: string;
  readonly archived: boolean;
}

/** Of a file that is full. */
interface FileRange extends Range {
  readonly jobs: number;
}

/** `2026-11-0002.jsonl 10000 12.0 31.7` */
const LINE = /^(\S+\.jsonl) (\d+) (\d+)\.(\d+) (\d+)\.(\d+)$/;
/** Beyond so many wishes, comparing them costs more than it saves. */
const MOST = 1000;

/**
 * Which ids each full file of the history has, so that looking for a job opens few of them. Only a help: a file without a
 * line here, or with another number of jobs than the line says, is always read.
 */
export class HistoryRanges {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Notes a file to which nothing will be added. Only for the writer. */
  note(name: string): void {
    const file = new HistoryFile(join(this.#dir, name));
    file.repair();
    const range = file.look((snapshot) => rangeOf(snapshot.entries()), undefined);
    if (!range) return;
    const [first, last] = [range.first, range.last].map(({ cluster, proc }) => `${cluster}.${proc}`);
    // The end of line before it: what a crash left of another line must not spoil this one.
    appendFileSync(this.#path, `\n${name} ${file.count()} ${first} ${last}`, { mode: 0o600 });
  }

  /** Tells of a file whether it may have a job that is wished for. */
  reader(wishes: readonly LookWish[]): (file: HistoryName) => boolean {
    const wanted = rangesOf(wishes);
    if (!wanted) return () => true;
    const known = this.read();
    return ({ name, archived }) => {
      const range = known.get(name);
      if (!range || wanted.some((one) => overlap(one, range))) return true;
      return !archived && new HistoryFile(join(this.#dir, name)).count() !== range.jobs;
    };
  }

  get #path(): string {
    return join(this.#dir, 'ranges');
  }

  /** By the names of the files. */
  read(): ReadonlyMap<string, FileRange> {
    const known = new Map<string, FileRange>();
    for (const line of textOf(this.#path).split('\n')) {
      const [, name, ...numbers] = LINE.exec(line) ?? [];
      const [jobs = 0, a = 0, b = 0, c = 0, d = 0] = numbers.map(Number);
      if (name !== undefined) known.set(name, { jobs, first: { cluster: a, proc: b }, last: { cluster: c, proc: d } });
    }
    return known;
  }
}

function rangeOf(ids: Iterable<JobId>): Range | undefined {
  let range: Range | undefined;
  for (const { cluster, proc } of ids) {
    const id = { cluster, proc };
    range ??= { first: id, last: id };
    if (isLess(id, range.first)) range = { ...range, first: id };
    else if (isLess(range.last, id)) range = { ...range, last: id };
  }
  return range;
}

/** `undefined` if any id may be wished for, or very many are. */
function rangesOf(wishes: readonly LookWish[]): readonly Range[] | undefined {
  const ranges: Range[] = [];
  for (const { ids, clusters } of wishes) {
    if (ids === undefined && clusters === undefined) return undefined;
    if (ranges.length + (ids?.length ?? 0) + (clusters?.length ?? 0) > MOST) return undefined;
    for (const id of ids ?? []) ranges.push({ first: id, last: id });
    for (const cluster of clusters ?? [])
      ranges.push({ first: { cluster, proc: 0 }, last: { cluster, proc: Number.POSITIVE_INFINITY } });
  }
  return ranges;
}

function overlap(one: Range, other: Range): boolean {
  return !isLess(one.last, other.first) && !isLess(other.last, one.first);
}

function isLess(one: JobId, other: JobId): boolean {
  return one.cluster < other.cluster || (one.cluster === other.cluster && one.proc < other.proc);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return '';
    throw thrown;
  }
}
