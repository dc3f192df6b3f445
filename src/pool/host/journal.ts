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
import { parseStored, type StoredPlace } from '../../util/stored-json.ts';

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

  /** What an earlier process wrote; an incomplete last line was never acknowledged, and is ignored. */
  static read<S extends z.ZodType>(path: string, schema: S): z.infer<S>[] {
    if (!existsSync(path)) return [];
    const lines = readFileSync(path, 'utf8').split('\n');
    lines.pop();
    return lines.filter(isJson).map((line) => parseStored(schema, line, damagedJournal(path)));
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
    const bytes = Buffer.from(`${lines.join('\n')}\n`);
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
    let size = 0;
    for (const entry of entries) size += writeSync(fd, `${JSON.stringify(entry)}\n`);
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

/** A power failure can leave garbage in what was never acknowledged. */
function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

/** To skip an entry that is not understood could start an attempt a second time. */
function damagedJournal(path: string): StoredPlace {
  return {
    what: `The journal ${path}`,
    remedy: `Start the version of gryphus that wrote it, or move the file elsewhere; what it promised is forgotten then.`,
  };
}
