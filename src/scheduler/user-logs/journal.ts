import { constants } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as z from 'zod';
import { asError, GryphusError } from '../../errors.ts';
import { namesFlushed } from '../../util/names-flushed.ts';
import { maybe, type Read } from '../../util/schema.ts';
import { parseStored, storedOr } from '../../util/stored-json.ts';
import type { Piece } from './append-once.ts';

/** What one batch of events appends to one log. */
export interface Addition {
  readonly path: string;
  readonly text: string;
  /** As `Piece.size`, if the piece is about to be written; absent if it has to wait behind others. */
  readonly size?: number;
}

/** The batch accepted last: the id of the first event that was read, and of the last one in it. */
const ACCEPTED = z.strictObject({ from: z.string(), last: z.string() });
export type Accepted = Read<typeof ACCEPTED>;

/** Where a piece is in the journal, bytes. */
interface Place {
  readonly offset: number;
  readonly length: number;
}

interface Pending {
  readonly pieces: Place[];
  /** Unix milliseconds, of the oldest piece. */
  readonly since: number;
  /** The first `count` pieces may already have been written after `size`. */
  attempt?: { readonly size: number; readonly count: number };
}

/** Strict, so that a line is of one kind only. */
const PIECE = z.strictObject({ p: z.string(), t: z.string(), at: z.number(), s: maybe(z.number()) });
const LINE = z.union([
  PIECE,
  z.strictObject({ a: z.string(), s: z.number(), n: z.number() }),
  z.strictObject({ d: z.string(), n: z.number() }),
  z.strictObject({ all: z.literal(true) }),
  ACCEPTED,
]);
type Line = Read<typeof LINE>;

/** Maximum amount that is combined into one write, in characters of the journal. */
const TOGETHER = 1_000_000;
/** The journal is compacted beyond this size if more than half of it is done, bytes. */
const LARGE = 8_000_000;

/**
 * The pending text of users' logs, on disk before any of it is written to a log. It consists of lines of JSON; a batch
 * counts only once the line with its events' ids follows it. Only the positions of the pieces are kept in memory.
 */
export class LogJournal {
  readonly #path: string;
  readonly #pending = new Map<string, Pending>();
  #file: FileHandle;
  #end = 0;
  #live = 0;
  #accepted: Accepted | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  static async open(path: string): Promise<LogJournal> {
    const journal = new LogJournal(path, await open(path, constants.O_RDWR | constants.O_CREAT, 0o600));
    await namesFlushed(dirname(path));
    await journal.#load();
    return journal;
  }

  get accepted(): Accepted | undefined {
    return this.#accepted;
  }

  /** The logs with pending text, longest waiting first. */
  owed(): Iterable<string> {
    return this.#pending.keys();
  }

  /** Since when the log has pending text, Unix milliseconds. */
  since(path: string): number | undefined {
    return this.#pending.get(path)?.since;
  }

  owes(path: string): boolean {
    return this.#pending.has(path);
  }

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  /** Resolves when the batch is on disk. Rejects with 'disk-full' and then keeps none of it. */
  accept(batch: Accepted, additions: readonly Addition[], now: number): Promise<void> {
    return this.#inTurn(async () => {
      if (this.isEmpty) await this.#truncate(0);
      else if (this.#end > LARGE && this.#live * 2 < this.#end) await this.#compact();
      const lines = additions.map(({ path, text, size }) =>
        lineOf({ p: path, t: text, at: now, ...(size === undefined ? {} : { s: size }) }),
      );
      let offset = this.#end;
      await this.#write([...lines, lineOf(batch)], true);
      for (const [i, { path, size }] of additions.entries()) {
        const length = lines[i]?.length ?? 0;
        this.#add(path, { offset, length }, now, size);
        offset += length;
      }
      this.#accepted = batch;
    });
  }

  /** The next pieces of a log, joined, and the log's size before the first attempt to write them, if there was one. */
  next(path: string): Promise<{ readonly text: string; readonly count: number; readonly size?: number }> {
    return this.#inTurn(async () => {
      const { pieces = [], attempt } = this.#pending.get(path) ?? {};
      let count = attempt?.count ?? 0;
      if (!attempt)
        for (let length = 0; count < pieces.length && length < TOGETHER; count++) length += at(pieces, count).length;
      const texts: string[] = [];
      for (const piece of pieces.slice(0, count)) texts.push(await this.#read(piece));
      return { text: texts.join(''), count, ...(attempt && { size: attempt.size }) };
    });
  }

  /** Records that the next `count` pieces are about to be written after `size`; on disk when it resolves. */
  attempt(path: string, count: number, size: Piece['size']): Promise<void> {
    return this.#inTurn(async () => {
      await this.#write([lineOf({ a: path, s: size, n: count })], true);
      const pending = this.#pending.get(path);
      if (pending) pending.attempt = { size, count };
    });
  }

  /** Records that pieces were written. If this record is lost, `appendOnce` finds them in the log. */
  done(written: ReadonlyMap<string, number>): Promise<void> {
    return this.#inTurn(async () => {
      for (const [path, count] of written) this.#drop(path, count);
      if (written.size === 0) return;
      await this.#write(
        this.isEmpty ? [lineOf({ all: true })] : [...written].map(([path, n]) => lineOf({ d: path, n })),
        false,
      );
    });
  }

  async close(): Promise<void> {
    await this.#turn.catch(() => undefined);
    await this.#file.close();
  }

  #add(path: string, place: Place, now: number, size: number | undefined): void {
    const known = this.#pending.get(path);
    const pending = known ?? { pieces: [], since: now };
    if (size !== undefined) pending.attempt = { size, count: pending.pieces.length + 1 };
    pending.pieces.push(place);
    this.#live += place.length;
    if (!known) this.#pending.set(path, pending);
  }

  #drop(path: string, count: number): void {
    const pending = this.#pending.get(path);
    if (!pending) return;
    for (const { length } of pending.pieces.splice(0, count)) this.#live -= length;
    delete pending.attempt;
    if (pending.pieces.length === 0) this.#pending.delete(path);
  }

  async #load(): Promise<void> {
    let batch: (() => void)[] = [];
    for await (const { text, offset, length } of this.#lines()) {
      const line = storedOr(LINE, text);
      // After a power failure, zeros may follow the synchronized part.
      if (!line) break;
      if ('p' in line) {
        batch.push(() => this.#add(line.p, { offset, length }, line.at, line.s));
        continue;
      }
      if ('from' in line) {
        for (const add of batch) add();
        this.#accepted = line;
      } else if ('a' in line) {
        const pending = this.#pending.get(line.a);
        if (pending) pending.attempt = { size: line.s, count: line.n };
      } else if ('d' in line) {
        this.#drop(line.d, line.n);
      } else {
        for (const [path, { pieces }] of this.#pending) this.#drop(path, pieces.length);
      }
      batch = [];
      this.#end = offset + length;
    }
    await this.#truncate(this.#end);
  }

  /** Complete lines only. */
  async *#lines(): AsyncGenerator<Place & { readonly text: string }> {
    const { size } = await this.#file.stat();
    let rest = Buffer.alloc(0);
    let start = 0;
    for (let from = 0; from < size; ) {
      const some = await this.#bytes({ offset: from, length: Math.min(1 << 20, size - from) });
      from += some.length;
      rest = Buffer.concat([rest, some]);
      let begin = 0;
      for (let cut = rest.indexOf(10); cut >= 0; cut = rest.indexOf(10, begin)) {
        yield { text: rest.toString('utf8', begin, cut), offset: start + begin, length: cut + 1 - begin };
        begin = cut + 1;
      }
      rest = rest.subarray(begin);
      start += begin;
    }
  }

  async #read(place: Place): Promise<string> {
    const text = (await this.#bytes(place)).toString('utf8');
    return parseStored(PIECE, text, {
      what: `The journal of the user logs ${this.#path}`,
      remedy: 'Move it elsewhere; events in it that are not yet in a user log are then lost.',
    }).t;
  }

  async #bytes({ offset, length }: Place): Promise<Buffer> {
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await this.#file.read(bytes, 0, length, offset);
    if (bytesRead < length) throw new GryphusError('internal', `${this.#path} is truncated.`);
    return bytes;
  }

  async #write(lines: readonly Buffer[], onDisk: boolean): Promise<void> {
    const all = Buffer.concat(lines);
    try {
      for (let done = 0; done < all.length; )
        done += (await this.#file.write(all, done, all.length - done, this.#end + done)).bytesWritten;
      if (onDisk) await this.#file.datasync();
      this.#end += all.length;
    } catch (thrown) {
      await this.#file.truncate(this.#end);
      throw refused(this.#path, thrown);
    }
  }

  async #truncate(size: number): Promise<void> {
    await this.#file.truncate(size);
    this.#end = size;
  }

  /** Replaces the journal with a new one that has only the pending pieces. */
  async #compact(): Promise<void> {
    const path = `${this.#path}.new`;
    const file = await open(path, 'w+', 0o600);
    const moved = new Map<string, Place[]>();
    let end = 0;
    const put = async (bytes: Buffer): Promise<Place> => {
      await file.writeFile(bytes);
      end += bytes.length;
      return { offset: end - bytes.length, length: bytes.length };
    };
    try {
      for (const [name, { pieces }] of this.#pending) {
        const places: Place[] = [];
        for (const piece of pieces) places.push(await put(await this.#bytes(piece)));
        moved.set(name, places);
      }
      if (this.#accepted) await put(lineOf(this.#accepted));
      for (const [name, { attempt }] of this.#pending)
        if (attempt) await put(lineOf({ a: name, s: attempt.size, n: attempt.count }));
      await file.datasync();
      await rename(path, this.#path);
    } catch (thrown) {
      await file.close();
      throw refused(path, thrown);
    }
    await this.#file.close();
    this.#file = file;
    this.#end = end;
    for (const [name, places] of moved) {
      const pending = this.#pending.get(name);
      pending?.pieces.splice(0, places.length, ...places);
    }
    await namesFlushed(dirname(this.#path));
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }
}

function at(pieces: readonly Place[], i: number): Place {
  return pieces[i] ?? { offset: 0, length: 0 };
}

function lineOf(line: Line): Buffer {
  return Buffer.from(`${JSON.stringify(line)}\n`);
}

function refused(path: string, thrown: unknown): unknown {
  if (!/ENOSPC|EDQUOT/.test(asError(thrown).message)) return thrown;
  return new GryphusError('disk-full', `${path} cannot be written: no space left on its disk.`, {
    cause: thrown,
    suggestions: ['Free some space there; pending events are written then.'],
  });
}
