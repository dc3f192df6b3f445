import {
  closeSync,
  existsSync,
  fdatasync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import type * as z from 'zod';
import { GryphusError } from '../../errors.ts';
import { flushDir, makeDirs } from '../../util/private-file.ts';
import { parseStored, type StoredPlace } from '../../util/stored-json.ts';

/**
 * What the first line of a write begins with. A write begins only when the one before it is on disk, so that whatever
 * precedes the last of these marks was acknowledged. A rewritten file ends with one.
 */
const FIRST_OF_WRITE = ' ';
/**
 * The version of the file, in its first line. 1 had no check sums, and records without a first line of this form are of before there
 * were versions: both are read.
 */
const VERSION = 2;
const HEAD = /^\{"journal":([0-9]{1,9})(?:,"id":"([\w-]{1,64})")?\}$/;
/** Each half of an id: the first stays when the file is rewritten, the second is new. Ids of before had the second alone. */
const HALF_ID = 12;
/** A line of version 2: the check sum, which goes on from the line before, and the record. */
const LINE = /^ ?([0-9a-f]{8}) (.*)$/s;

/**
 * A file of records, one JSON text per line. Callers are notified when their records are on disk. Records added during
 * a write go to disk together in the next one. How many lines were acknowledged stands in a second file, which is
 * written after them: a file that was cut later has fewer.
 */
export class Journal<Entry> {
  readonly #path: string;
  #fd = -1;
  #acknowledged = -1;
  #id = '';
  readonly #origin: string;
  #sum = 0;
  #count = 0;
  #lines: string[] = [];
  #waiting: (() => void)[] = [];
  #busy = false;
  #size = 0;
  readonly #onError: (error: Error) => void;

  /** Begins with these entries, in place of a file that is there. `onError`: the disk failed; nothing that is waiting will be notified. */
  constructor(path: string, onError: (error: Error) => void, entries: Iterable<Entry> = []) {
    makeDirs(dirname(path));
    this.#path = path;
    this.#onError = onError;
    this.#origin = journalOrigin(path) ?? halfId();
    this.rewrite(entries);
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
    const [head = '', version = '0', id] = HEAD.exec(lines[0] ?? '') ?? [];
    if (Number(version) > VERSION) throw newer(path, Number(version));
    const acknowledged = acknowledgedLines(path, lines, id);
    if (lines.length < acknowledged) throw cut(path, lines.length + 1);
    // Kept as an empty line: line numbers are told to users.
    if (head !== '') lines[0] = FIRST_OF_WRITE;
    const lastWrite = lines.findLastIndex((line) => line.startsWith(FIRST_OF_WRITE));
    const entries: z.infer<S>[] = [];
    let sum = crc32(head);
    for (const [index, line] of lines.entries()) {
      if (line === FIRST_OF_WRITE) continue;
      let json = line;
      if (id !== undefined) {
        const [, written, record = ''] = LINE.exec(line) ?? [];
        sum = crc32(record, sum);
        json = written === hex(sum) ? record : '';
      }
      // Whatever follows belongs to the same write.
      if (index >= Math.max(lastWrite, acknowledged) && !isJson(json)) break;
      if (id !== undefined && json === '') throw damaged(path, index + 1);
      entries.push(parseStored(schema, json, damagedAt(path, index + 1)));
    }
    return entries;
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
    const bytes = Buffer.from(`${FIRST_OF_WRITE}${lines.map((line) => this.#line(line)).join('')}`);
    this.#size += bytes.length;
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at);
    } catch (thrown) {
      return this.#onError(thrown as Error);
    }
    fdatasync(this.#fd, (error) => {
      if (error) return this.#onError(error);
      try {
        this.#acknowledge();
      } catch (thrown) {
        return this.#onError(thrown as Error);
      }
      done();
    });
  }

  /** The record as a line of the file. */
  #line(json: string): string {
    this.#sum = crc32(json, this.#sum);
    this.#count += 1;
    return `${hex(this.#sum)} ${json}\n`;
  }

  /** Not waited for: after a power failure it may say less than there is, never more. */
  #acknowledge(): void {
    writeSync(this.#acknowledged, acknowledgement(this.#id, this.#count), 0);
  }

  /** Replaces the whole file by these entries. Call only while the journal is idle. */
  rewrite(entries: Iterable<Entry>): void {
    const fresh = `${this.#path}.new`;
    const fd = openSync(fresh, 'w', 0o600);
    // What was acknowledged of the former file does not hold for one with another id.
    this.#id = this.#origin + halfId();
    const head = JSON.stringify({ journal: VERSION, id: this.#id });
    this.#sum = crc32(head);
    this.#count = 1;
    let size = writeSync(fd, `${head}\n`);
    for (const entry of entries) size += writeSync(fd, this.#line(JSON.stringify(entry)));
    size += writeSync(fd, `${FIRST_OF_WRITE}\n`);
    this.#count += 1;
    fsyncSync(fd);
    renameSync(fresh, this.#path);
    flushDir(dirname(this.#path));
    this.close();
    this.#fd = fd;
    this.#size = size;
    this.#acknowledged = openSync(besides(this.#path), 'w', 0o600);
    this.#acknowledge();
  }

  get idle(): boolean {
    return !this.#busy && this.#lines.length === 0;
  }

  close(): void {
    if (this.#fd === -1) return;
    closeSync(this.#fd);
    closeSync(this.#acknowledged);
  }
}

/** Names all that was written since a journal began without a former one; `undefined` if none is there, or an earlier version wrote it. */
export function journalOrigin(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const fd = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(200);
    const [head = ''] = bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, 0)).split('\n');
    const id = HEAD.exec(head)?.[2];
    return id?.length === 2 * HALF_ID ? id.slice(0, HALF_ID) : undefined;
  } finally {
    closeSync(fd);
  }
}

const halfId = () => randomBytes((HALF_ID * 3) / 4).toString('base64url');

const besides = (path: string) => `${path}.acknowledged`;

const hex = (sum: number) => sum.toString(16).padStart(8, '0');

/** Of one length, so that a write never leaves a part of the former. */
function acknowledgement(id: string, lines: number): string {
  return `${id} ${String(lines).padStart(16, '0')}\n`;
}

/** How many lines there were for certain; 0 if that is not known. */
function acknowledgedLines(path: string, lines: readonly string[], id: string | undefined): number {
  if (!existsSync(besides(path))) return 0;
  const [of, count] = readFileSync(besides(path), 'utf8').trim().split(' ');
  // A file that is empty was cut.
  return of === id || lines.length === 0 ? Number(count) || 0 : 0;
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

function cut(path: string, line: number): GryphusError {
  return damage(`Line ${line} of the pool's journal ${path} is missing: the file was cut.`);
}

function damaged(path: string, line: number): GryphusError {
  return damage(`Line ${line} of the pool's journal ${path} is damaged: its check sum is wrong.`);
}

function damage(message: string): GryphusError {
  return new GryphusError('state-version', message, { suggestions: [MOVE] });
}

const MOVE =
  'Put the file back if you can. Otherwise move it elsewhere: the jobs that were in the pool are then held, because it is unknown ' +
  'whether they ran, and `gryphus release` runs them again.';

function damagedAt(path: string, line: number): StoredPlace {
  return {
    what: `Line ${line} of the pool's journal ${path}`,
    remedy:
      'Start the version of gryphus that wrote it. If the file is damaged, move it elsewhere: the jobs that were in the ' +
      'pool are then held, because it is unknown whether they ran, and `gryphus release` runs them again.',
  };
}
