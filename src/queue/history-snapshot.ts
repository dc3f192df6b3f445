import { type Bytes, indexOf, openArchive, openPlain } from './history-archive.ts';

/** One job's line in a history file. */
export interface HistoryEntry {
  readonly cluster: number;
  readonly proc: number;
  /** Bytes. */
  readonly offset: number;
  /** Bytes, including the newline. */
  readonly length: number;
}

/** Size of one job's record in the index: cluster, proc, offset, length; four doubles. */
export const RECORD = 32;
const RECORDS_AT_ONCE = 2048;
/** Lines of jobs that ended together are adjacent, so they are read in pieces of this many bytes. */
const PIECE = 1 << 18;

/**
 * The contents of a history file at one moment, read through open descriptors: neither later writes nor the removal of
 * the file change it. The index may lag behind; lines that it lacks are read from the file.
 */
export class HistorySnapshot {
  /** Size of the file, bytes. */
  readonly size: number;
  /** Size of the part of the index that is complete and refers to the file as it is, bytes. */
  readonly indexed: number;
  /** Where the last indexed line ends. */
  readonly end: number;
  readonly #file: Bytes;
  readonly #index: Bytes | undefined;
  #piece: Buffer = Buffer.alloc(0);
  #pieceAt = 0;

  /** `undefined` if there is neither such a file nor its archive. */
  static open(path: string): HistorySnapshot | undefined {
    // The file first: index entries added in the meantime point beyond its size, and are ignored. A file that is gone has
    // an archive, unless it was pruned.
    const file = openPlain(path);
    if (file) return new HistorySnapshot(file, openPlain(indexOf(path)));
    const archived = openArchive(path);
    return archived && new HistorySnapshot(archived.file, archived.index);
  }

  private constructor(file: Bytes, index: Bytes | undefined) {
    this.#file = file;
    this.#index = index;
    this.size = file.size;
    [this.indexed, this.end] = this.#whole();
  }

  close(): void {
    this.#file.close();
    this.#index?.close();
  }

  /** The wanted entries, newest first. */
  *entries(wanted: (cluster: number, proc: number) => boolean = () => true): Generator<HistoryEntry> {
    for (const entry of [...this.unindexed()].reverse()) if (wanted(entry.cluster, entry.proc)) yield entry;
    for (let end = this.indexed; end > 0; ) {
      const from = Math.max(0, end - RECORDS_AT_ONCE * RECORD);
      const block = this.#index?.read(from, end - from) ?? Buffer.alloc(0);
      for (let at = block.length - RECORD; at >= 0; at -= RECORD) {
        if (wanted(block.readDoubleLE(at), block.readDoubleLE(at + 8))) yield entryAt(block, at);
      }
      end = from;
    }
  }

  *unindexed(): Generator<HistoryEntry> {
    for (const { text, offset, length } of this.lines(this.end)) {
      const id = /^\{"j":"(\d+)\.(\d+)"/.exec(text);
      if (id) yield { cluster: Number(id[1]), proc: Number(id[2]), offset, length };
    }
  }

  /** '' if the line was rolled back, because the disk was full; its job is still in the queue. */
  line(offset: number, length: number): string {
    const end = offset + length;
    if (offset < this.#pieceAt || end > this.#pieceAt + this.#piece.length) {
      // Read backwards, the order of the entries.
      this.#pieceAt = Math.max(0, Math.min(offset, end - PIECE));
      this.#piece = this.#file.read(this.#pieceAt, end - this.#pieceAt);
    }
    const at = offset - this.#pieceAt;
    return at + length > this.#piece.length ? '' : this.#piece.toString('utf8', at, at + length);
  }

  /** Complete lines from `offset` to the end. */
  *lines(offset: number): Generator<{ readonly text: string; readonly offset: number; readonly length: number }> {
    let rest: Buffer = Buffer.alloc(0);
    for (let at = offset; at < this.size; ) {
      const some = this.#file.read(at, Math.min(1 << 20, this.size - at));
      if (some.length === 0) return;
      const start = at - rest.length;
      rest = Buffer.concat([rest, some]);
      let begin = 0;
      for (let cut = rest.indexOf(10); cut >= 0; cut = rest.indexOf(10, begin)) {
        yield { text: rest.toString('utf8', begin, cut), offset: start + begin, length: cut + 1 - begin };
        begin = cut + 1;
      }
      rest = rest.subarray(begin);
      at += some.length;
    }
  }

  #whole(): [bytes: number, end: number] {
    if (this.#index === undefined) return [0, 0];
    const there = this.#index.size;
    for (let bytes = there - (there % RECORD); bytes > 0; bytes -= RECORD) {
      const last = entryAt(this.#index.read(bytes - RECORD, RECORD), 0);
      // A power failure can leave zeros.
      if (last.length > 0 && last.offset + last.length <= this.size) return [bytes, last.offset + last.length];
    }
    return [0, 0];
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
