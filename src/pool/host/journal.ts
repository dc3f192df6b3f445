import {
  closeSync,
  existsSync,
  fdatasync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
  fsyncSync,
  mkdirSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type * as z from 'zod';
import { GryphusError } from '../../errors.ts';
import { parseStored, type StoredPlace } from '../../util/stored-json.ts';

/**
 * What the first line of a write begins with: blanks before JSON mean nothing. A write begins only when the one before
 * it is on disk, so that whatever precedes the last of these marks was acknowledged. A rewritten file ends with one.
 */
const FIRST_OF_WRITE = ' ';
/** The version of the file, in its first line; a file without one is of before there were any, and has the same records. */
const VERSION = 1;
const HEAD = /^\{"journal":([0-9]{1,9})\}$/;

/**
 * A file of records, one JSON text per line. Callers are notified when their records are on disk. Records added during
 * a write go to disk together in the next one.
 */
export class Journal<Entry> {
  readonly #path: string;
  #fd: number;
  #lines: string[] = [];
  #waiting: (() => void)[] = [];
  #busy = false;
  #size: number;
  readonly #onError: (error: Error) => void;

  /** `onError`: the disk failed; nothing that is waiting will be notified. */
  constructor(path: string, onError: (error: Error) => void) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    this.#path = path;
    this.#onError = onError;
    this.#fd = openSync(path, 'a', 0o600);
    this.#size = existsSync(path) ? readFileSync(path).length : 0;
  }

  /**
   * What an earlier process wrote. An incomplete last line, and garbage that a power failure left in the last write,
   * were never acknowledged and are ignored. Throws a GryphusError 'state-version' at any other damage: to skip a record
   * could start an attempt a second time.
   */
  static read<S extends z.ZodType>(path: string, schema: S): z.infer<S>[] {
    if (!existsSync(path)) return [];
    const lines = readFileSync(path, 'utf8').split('\n');
    lines.pop();
    const [, version] = HEAD.exec(lines[0] ?? '') ?? [];
    if (Number(version ?? 0) > VERSION) throw newer(path, Number(version));
    // Kept as an empty line: line numbers are told to users.
    if (version !== undefined) lines[0] = FIRST_OF_WRITE;
    const lastWrite = lines.findLastIndex((line) => line.startsWith(FIRST_OF_WRITE));
    return lines.flatMap((line, index) =>
      line === FIRST_OF_WRITE || (index >= lastWrite && !isJson(line))
        ? []
        : [parseStored(schema, line, damagedAt(path, index + 1))],
    );
  }

  /** Bytes. */
  get size(): number {
    return this.#size;
  }

  add(entry: Entry): void {
    this.#lines.push(JSON.stringify(entry));
  }

  /** Calls back when everything added so far is on disk; immediately if nothing is pending. */
  whenSaved(call: () => void): void {
    if (this.#lines.length === 0 && !this.#busy) return call();
    this.#waiting.push(call);
    if (!this.#busy) this.#write();
  }

  #write(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    const lines = this.#lines;
    this.#lines = [];
    const done = () => {
      this.#busy = false;
      for (const call of waiting) call();
      if (this.#waiting.length > 0 && !this.#busy) this.#write();
    };
    if (lines.length === 0) return done();
    this.#busy = true;
    const bytes = Buffer.from(`${FIRST_OF_WRITE}${lines.join('\n')}\n`);
    this.#size += bytes.length;
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at);
    } catch (thrown) {
      return this.#onError(thrown as Error);
    }
    fdatasync(this.#fd, (error) => {
      if (error) this.#onError(error);
      else done();
    });
  }

  /** Replaces the whole file by these entries. Call only while the journal is idle. */
  rewrite(entries: Iterable<Entry>): void {
    const fresh = `${this.#path}.new`;
    const fd = openSync(fresh, 'w', 0o600);
    let size = writeSync(fd, `${JSON.stringify({ journal: VERSION })}\n`);
    for (const entry of entries) size += writeSync(fd, `${JSON.stringify(entry)}\n`);
    size += writeSync(fd, `${FIRST_OF_WRITE}\n`);
    fsyncSync(fd);
    renameSync(fresh, this.#path);
    closeSync(this.#fd);
    this.#fd = fd;
    this.#size = size;
  }

  get idle(): boolean {
    return !this.#busy && this.#lines.length === 0;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

function newer(path: string, version: number): GryphusError {
  return new GryphusError(
    'state-version',
    `The pool's journal ${path} was written by a newer Gryphus (journal version ${version}, this one supports ${VERSION}).`,
    { suggestions: ['Use that newer Gryphus.'] },
  );
}

function damagedAt(path: string, line: number): StoredPlace {
  return {
    what: `Line ${line} of the pool's journal ${path}`,
    remedy:
      'Start the version of gryphus that wrote it. If the file is damaged, move it elsewhere: the jobs that were in the ' +
      'pool are then held, because it is unknown whether they ran, and `gryphus release` runs them again.',
  };
}
