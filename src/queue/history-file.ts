import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs';

/** One job's line in a history file. */
export interface HistoryEntry {
  readonly cluster: number;
  readonly proc: number;
  /** Bytes. */
  readonly offset: number;
  /** Bytes, the newline included. */
  readonly length: number;
}

export interface JobLine {
  readonly j: string;
  /** Offset and length of the line with the cluster's ad, in the same file. */
  readonly c: readonly [offset: number, length: number];
  readonly s: string;
  readonly t: number;
  readonly own: Readonly<Record<string, string | null>>;
}

export interface ClusterLine {
  readonly c: number;
  readonly ad: Readonly<Record<string, string | null>>;
}

/** cluster, proc, offset, length: four doubles. */
const RECORD = 32;
const BLOCK = 2048 * RECORD;

/**
 * An append-only file of JSON lines (clusters' ads, and jobs that point to them) and beside it an index of its jobs, which
 * may lag behind: what it lacks is read from the file.
 */
export class HistoryFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Bytes; 0 where there is none. */
  size(): number {
    return this.#reading(this.path, (fd) => fstatSync(fd).size) ?? 0;
  }

  /** Jobs in it, as far as they are indexed. */
  count(): number {
    return Math.floor((this.#reading(this.#index, (fd) => fstatSync(fd).size) ?? 0) / RECORD);
  }

  /** With its index. */
  delete(): void {
    rmSync(this.path, { force: true });
    rmSync(this.#index, { force: true });
  }

  line(offset: number, length: number): string {
    return this.#reading(this.path, (fd) => read(fd, offset, length).toString('utf8')) ?? '';
  }

  /** Whole lines from `offset` to the end. */
  *lines(offset: number): Generator<{ readonly text: string; readonly offset: number; readonly length: number }> {
    const end = this.size();
    let rest = Buffer.alloc(0);
    for (let at = offset; at < end; ) {
      const from = at;
      const some = this.#reading(this.path, (fd) => read(fd, from, Math.min(1 << 20, end - from))) ?? Buffer.alloc(0);
      if (some.length === 0) return;
      let start = from - rest.length;
      rest = Buffer.concat([rest, some]);
      let begin = 0;
      for (let cut = rest.indexOf(10); cut >= 0; cut = rest.indexOf(10, begin)) {
        yield { text: rest.toString('utf8', begin, cut), offset: start + begin, length: cut + 1 - begin };
        begin = cut + 1;
      }
      rest = rest.subarray(begin);
      start += begin;
      at += some.length;
    }
  }

  /** Appends whole lines, on disk when it returns; leaves the file as it was when there is no room. The new size. */
  append(lines: readonly Buffer[]): number {
    const fd = openSync(this.path, 'a', 0o600);
    const before = fstatSync(fd).size;
    try {
      const all = Buffer.concat(lines);
      for (let done = 0; done < all.length; ) done += writeSync(fd, all, done);
      fsyncSync(fd);
      return before + all.length;
    } catch (thrown) {
      ftruncateSync(fd, before);
      throw thrown;
    } finally {
      closeSync(fd);
    }
  }

  /** Cuts off the last line where it is not whole, and brings the index up to the file. For the one writer. */
  repair(): void {
    if (!existsSync(this.path)) return;
    const fd = openSync(this.path, 'r+');
    try {
      const size = fstatSync(fd).size;
      let end = size;
      while (end > 0) {
        const from = Math.max(0, end - 65_536);
        const cut = read(fd, from, end - from).lastIndexOf(10);
        end = cut < 0 ? from : from + cut + 1;
        if (cut >= 0) break;
      }
      if (end < size) ftruncateSync(fd, end);
    } finally {
      closeSync(fd);
    }
    const missing = [...this.#unindexed()];
    const index = openSync(this.#index, 'a', 0o600);
    try {
      ftruncateSync(index, this.#indexed().bytes);
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
    const fd = openSync(this.#index, 'a', 0o600);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
    } finally {
      closeSync(fd);
    }
  }

  /** Newest first. */
  *entries(): Generator<HistoryEntry> {
    yield* [...this.#unindexed()].reverse();
    for (let end = this.#indexed().bytes; end > 0; ) {
      const from = Math.max(0, end - BLOCK);
      const upTo = end;
      const block = this.#reading(this.#index, (fd) => read(fd, from, upTo - from)) ?? Buffer.alloc(0);
      for (let at = block.length - RECORD; at >= 0; at -= RECORD) yield entryAt(block, at);
      end = from;
    }
  }

  get #index(): string {
    return this.path.replace(/\.jsonl$/, '.index');
  }

  /** How much of the index is whole and within the file, and where the last indexed line ends. */
  #indexed(): { readonly bytes: number; readonly end: number } {
    const size = this.size();
    const none = { bytes: 0, end: 0 };
    return (
      this.#reading(this.#index, (fd) => {
        const whole = fstatSync(fd).size;
        for (let bytes = whole - (whole % RECORD); bytes > 0; bytes -= RECORD) {
          const last = entryAt(read(fd, bytes - RECORD, RECORD), 0);
          // A crash of the machine can leave zeros.
          if (last.length > 0 && last.offset + last.length <= size) return { bytes, end: last.offset + last.length };
        }
        return none;
      }) ?? none
    );
  }

  *#unindexed(): Generator<HistoryEntry> {
    for (const { text, offset, length } of this.lines(this.#indexed().end)) {
      if (!text.startsWith('{"j":')) continue;
      const [cluster, proc] = (JSON.parse(text) as JobLine).j.split('.').map(Number);
      yield { cluster: cluster ?? 0, proc: proc ?? 0, offset, length };
    }
  }

  #reading<T>(path: string, use: (fd: number) => T): T | undefined {
    if (!existsSync(path)) return undefined;
    const fd = openSync(path, 'r');
    try {
      return use(fd);
    } finally {
      closeSync(fd);
    }
  }
}

function entryAt(bytes: Buffer, at: number): HistoryEntry {
  return {
    cluster: bytes.readDoubleLE(at),
    proc: bytes.readDoubleLE(at + 8),
    offset: bytes.readDoubleLE(at + 16),
    length: bytes.readDoubleLE(at + 24),
  };
}

function read(fd: number, offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const n = readSync(fd, bytes, done, length - done, offset + done);
    if (n === 0) break;
    done += n;
  }
  return bytes.subarray(0, done);
}
