import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import * as z from 'zod';
import { type AttrTexts, isAttrTexts } from '../job/attrs.ts';
import { attrTexts } from '../job/schema.ts';
import type { Read } from '../util/schema.ts';
import { archive, indexOf, isArchived, removeArchive, removePlain, unpackArchive } from './history-archive.ts';
import { type HistoryEntry, HistorySnapshot, RECORD } from './history-snapshot.ts';
import { dirname } from 'node:path';
import { flushDir } from '../util/private-file.ts';

export interface JobLine {
  readonly j: string;
  /** Offset and length of the line with the cluster's ad, in the same file. */
  readonly c: readonly [number, number];
  readonly s: string;
  /** Unix seconds of its retirement. */
  readonly t: number;
  readonly own: AttrTexts;
}

/** Checked by hand, because a search of the history reads millions of them. */
export function isJobLine(value: unknown): value is JobLine {
  if (typeof value !== 'object' || value === null) return false;
  if (!('j' in value && 'c' in value && 's' in value && 't' in value && 'own' in value)) return false;
  const { j, c, s, t, own } = value;
  const place = Array.isArray(c) && c.length === 2 && typeof c[0] === 'number' && typeof c[1] === 'number';
  return place && typeof j === 'string' && typeof s === 'string' && typeof t === 'number' && isAttrTexts(own);
}

export const CLUSTER_LINE = z.object({ c: z.number(), ad: attrTexts });
export type ClusterLine = Read<typeof CLUSTER_LINE>;

/**
 * An append-only file of JSON lines (clusters' ads, and jobs that refer to them), with an index of its jobs in a second
 * file. For the writer; readers use snapshots.
 */
export class HistoryFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Size in bytes; 0 if there is no file. */
  size(): number {
    return statSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Number of indexed jobs; 0 if it is archived. */
  count(): number {
    return Math.floor((statSync(indexOf(this.path), { throwIfNoEntry: false })?.size ?? 0) / RECORD);
  }

  /** Deletes the file, its index and its archive. */
  delete(): void {
    removePlain(this.path);
    removeArchive(this.path);
  }

  get archived(): boolean {
    return isArchived(this.path);
  }

  /** Only for a file that is repaired, and to which nothing will be added. */
  archive(): Promise<void> {
    return archive(this.path);
  }

  /** Deletes what is left of it beside its archive. */
  deletePlain(): void {
    removePlain(this.path);
  }

  /** Reads the current contents; `fallback` if there is no file. */
  look<T>(use: (snapshot: HistorySnapshot) => T, fallback: T): T {
    const snapshot = HistorySnapshot.open(this.path);
    if (!snapshot) return fallback;
    try {
      return use(snapshot);
    } finally {
      snapshot.close();
    }
  }

  /**
   * Appends complete lines, which are on disk when it returns. If the disk is full, restores the file. Returns the new
   * size.
   */
  append(lines: readonly Buffer[]): number {
    const fd = openSync(this.path, 'a', 0o600);
    const before = fstatSync(fd).size;
    try {
      const all = Buffer.concat(lines);
      for (let done = 0; done < all.length; ) done += writeSync(fd, all, done);
      fsyncSync(fd);
      if (before === 0) flushDir(dirname(this.path));
      return before + all.length;
    } catch (thrown) {
      ftruncateSync(fd, before);
      throw thrown;
    } finally {
      closeSync(fd);
    }
  }

  /** Cuts off what follows this many bytes; an archive becomes a file again. Only for the writer. */
  cut(size: number): void {
    if (this.archived) unpackArchive(this.path, size);
    else if (this.size() > size) truncateSync(this.path, size);
    if (this.archived) return;
    rmSync(indexOf(this.path), { force: true });
    this.repair();
  }

  /** Cuts off an incomplete last line, and completes the index. Only for the writer. */
  repair(): void {
    if (!existsSync(this.path)) return;
    const fd = openSync(this.path, 'r+');
    try {
      const size = fstatSync(fd).size;
      let end = size;
      while (end > 0) {
        const from = Math.max(0, end - 65_536);
        const bytes = Buffer.alloc(end - from);
        const cut = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, from)).lastIndexOf(10);
        end = cut < 0 ? from : from + cut + 1;
        if (cut >= 0) break;
      }
      if (end < size) ftruncateSync(fd, end);
    } finally {
      closeSync(fd);
    }
    const { indexed, missing } = this.look<{ readonly indexed: number; readonly missing: readonly HistoryEntry[] }>(
      (snapshot) => ({ indexed: snapshot.indexed, missing: [...snapshot.unindexed()] }),
      { indexed: 0, missing: [] },
    );
    const index = openSync(indexOf(this.path), 'a', 0o600);
    try {
      ftruncateSync(index, indexed);
    } finally {
      closeSync(index);
    }
    this.index(missing);
  }

  index(entries: readonly HistoryEntry[]): void {
    const bytes = Buffer.alloc(entries.length * RECORD);
    for (const [i, { cluster, proc, offset, length }] of entries.entries()) {
      for (const [n, value] of [cluster, proc, offset, length].entries())
        bytes.writeDoubleLE(value, i * RECORD + n * 8);
    }
    const fd = openSync(indexOf(this.path), 'a', 0o600);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
    } finally {
      closeSync(fd);
    }
  }
}
