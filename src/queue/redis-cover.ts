import { appendFileSync, closeSync, fdatasyncSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as pause } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { writeWhole } from '../util/private-file.ts';
import {
  CHANGES_DIR,
  endOf,
  type FileSums,
  changedByte,
  LINES,
  manifestOf,
  readSums,
  SEGMENT,
  type Segment,
  segmentOf,
  serverFiles,
  type ServerFile,
  startOf,
  statOf,
  type Sums,
  sumsFile,
  sumsText,
} from './redis-sums.ts';

/** Segments that are summed before others in this process get their turn. */
const TURN = 16;
/** What an orderly end sums at most, in bytes: it has few seconds. */
const AT_REST = 64 << 20;
/** Lines that are not needed any more before all is written anew. */
const SPARE_LINES = 2000;

/** Keeps check sums of what Redis has written. It is the only one who does while that Redis runs. */
export class FileCover {
  readonly #dir: string;
  #sums: Sums | undefined;
  #size = -1;
  #lines = 0;
  #seen = '';

  /** `dir`: where Redis works. */
  constructor(dir: string) {
    this.#dir = dir;
  }

  /**
   * Sums what was added since the last time. `runId` asks Redis for its run id; since it answers nobody before its file is on disk, all
   * that was in the file before the answer is whole, and stays.
   */
  async look(runId: () => Promise<string>): Promise<void> {
    const manifest = manifestOf(this.#dir);
    const files = serverFiles(manifest);
    const seen = JSON.stringify(files.map(({ name }) => [name, statOf(this.#dir, name)?.size]));
    if (files.length === 0 || seen === this.#seen) return;
    const run = await runId();
    const sizes = files.map((file) => ({ file, size: statOf(this.#dir, file.name)?.size ?? 0 }));
    if ((await runId()) !== run) return;
    const sums = this.#load();
    if (sums.run !== run) {
      for (const { file, size } of sizes) this.#dropChangedEnd(sums, file, size);
      sums.run = run;
      this.#append(LINES.run(run));
    }
    this.#noteManifest(sums, manifest);
    for (const { file, size } of sizes) await this.#cover(sums, file, size);
    this.#seen = seen;
    this.#tidy(sums, files);
  }

  /** The same when Redis has ended. `runs`: whether another one has been started since. */
  async rest(runs: () => boolean): Promise<void> {
    const manifest = manifestOf(this.#dir);
    const files = serverFiles(manifest);
    if (files.length === 0) return;
    const sums = this.#load();
    this.#noteManifest(sums, manifest);
    for (const file of files) {
      const size = statOf(this.#dir, file.name)?.size ?? 0;
      if (runs()) return;
      this.#dropChangedEnd(sums, file, size);
      const end = endOf(sums.files.get(file.name));
      await this.#cover(sums, file, Math.min(size, end + AT_REST), runs);
    }
  }

  #load(): Sums {
    const size = statSync(sumsFile(this.#dir), { throwIfNoEntry: false })?.size ?? 0;
    if (this.#sums && size === this.#size) return this.#sums;
    const sums: Sums = readSums(this.#dir) ?? { files: new Map(), manifest: undefined, run: '', whole: false };
    this.#sums = sums;
    this.#lines = linesOf(sums);
    if (sums.whole) this.#size = size;
    else this.#rewrite(sums);
    return sums;
  }

  /** Redis may have dropped the end of its file when it started, and written on: what is known of it holds up to there. */
  #dropChangedEnd(sums: Sums, { name, grows }: ServerFile, size: number): void {
    const known = sums.files.get(name);
    if (!known || !grows) return;
    const before = endOf(known);
    const fd = openSync(this.#path(name), 'r');
    try {
      for (let last = known.segments.at(-1); last; last = known.segments.at(-1)) {
        if (last.to <= size && isIntact(fd, startOf(known, known.segments.length - 1), last)) break;
        known.segments.pop();
      }
    } finally {
      closeSync(fd);
    }
    if (endOf(known) < before) this.#append(LINES.cut(name, endOf(known)));
  }

  /** Redis replaces it as a whole, and does not read it while it runs: a change of one byte is damage. */
  #noteManifest(sums: Sums, manifest: string): void {
    if (sums.manifest === manifest || changedByte(sums.manifest ?? '', manifest) !== undefined) return;
    sums.manifest = manifest;
    this.#append(LINES.manifest(manifest));
  }

  async #cover(sums: Sums, { name }: ServerFile, size: number, runs?: () => boolean): Promise<void> {
    const known = sums.files.get(name);
    let from = endOf(known);
    if (from >= size) return;
    const fd = openSync(this.#path(name), 'r');
    try {
      // Of a Redis that was killed, the end may be in no more than the kernel's memory.
      if (runs) fdatasyncSync(fd);
      const file: FileSums = known ?? { inode: fstatSync(fd).ino, segments: [] };
      sums.files.set(name, file);
      from = takeBack(fd, file);
      while (from < size) {
        const piece = readAt(fd, from, Math.min(SEGMENT * TURN, size - from));
        // It became shorter meanwhile, or another Redis writes there.
        if (piece.length === 0 || runs?.()) return;
        let lines = '';
        for (let start = 0; start < piece.length; start += SEGMENT) {
          const bytes = piece.subarray(start, start + SEGMENT);
          const segment = segmentOf(bytes, from + start + bytes.length);
          file.segments.push(segment);
          lines += LINES.segment(name, file.inode, from + start, segment);
        }
        this.#append(lines);
        from += piece.length;
        await pause();
      }
    } finally {
      closeSync(fd);
    }
  }

  #append(lines: string): void {
    appendFileSync(sumsFile(this.#dir), lines, { mode: 0o600 });
    this.#size = statSync(sumsFile(this.#dir)).size;
    this.#lines += lines.split('\n').length - 1;
  }

  /** Forgets files that Redis has removed, and lines that others have replaced. */
  #tidy(sums: Sums, files: readonly ServerFile[]): void {
    const names = new Set(files.map(({ name }) => name));
    for (const name of sums.files.keys()) if (!names.has(name)) sums.files.delete(name);
    if (this.#lines > linesOf(sums) + SPARE_LINES) this.#rewrite(sums);
  }

  #rewrite(sums: Sums): void {
    const text = sumsText(sums);
    writeWhole(sumsFile(this.#dir), text);
    this.#size = text.length;
    this.#lines = linesOf(sums);
  }

  #path(name: string): string {
    return join(this.#dir, CHANGES_DIR, name);
  }
}

function linesOf({ files }: Sums): number {
  return [...files.values()].reduce((sum, { segments }) => sum + segments.length, 1);
}

/** A short last segment is summed again with what follows, if it is as it was. Returns where to go on. */
function takeBack(fd: number, file: FileSums): number {
  const last = file.segments.at(-1);
  const from = startOf(file, file.segments.length - 1);
  if (!last || last.to - from >= SEGMENT || !isIntact(fd, from, last)) return endOf(file);
  file.segments.pop();
  return from;
}

function isIntact(fd: number, from: number, { to, crc }: Segment): boolean {
  return crc32(readAt(fd, from, to - from)) === crc;
}

/** Fewer bytes where the file ends before. */
export function readAt(fd: number, from: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const got = readSync(fd, bytes, done, length - done, from + done);
    if (got === 0) break;
    done += got;
  }
  return bytes.subarray(0, done);
}
