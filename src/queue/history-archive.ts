import { closeSync, fstatSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs';
import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import * as z from 'zod';
import { writeWhole } from '../util/private-file.ts';
import { parseStored } from '../util/stored-json.ts';

const packed = promisify(gzip);

/** Bytes of the file in each piece, which is compressed by itself: what must be expanded to read one line. */
const PIECE = 1 << 17;
/** The lines compress six-fold; a higher level costs twice the time for a tenth less. */
const LEVEL = 3;

/** Bytes that can be read anywhere. */
export interface Bytes {
  readonly size: number;
  /** Fewer at the end. */
  read(offset: number, length: number): Buffer;
  close(): void;
}

/** The first line of an archive's index; the index's records follow it. */
const HEAD = z.object({
  /** Size of the file that was archived, bytes. */
  size: z.number(),
  /** Where each piece begins in the archive, and at last where the last one ends. */
  pieces: z.array(z.number()),
});

export function indexOf(path: string): string {
  return path.replace(/\.jsonl$/, '.index');
}

/** A full history file and its index, each compressed by gzip. `path`: the name that the file had before. */
export function archiveOf(path: string): string {
  return `${path}.gz`;
}

export function isArchived(path: string): boolean {
  return statSync(archiveOf(path), { throwIfNoEntry: false }) !== undefined;
}

/**
 * Replaces a file to which nothing will be added, and its complete index, by their archive. After a crash the file, the
 * archive or both are there, each whole. Only for the writer.
 */
export async function archive(path: string): Promise<void> {
  const bytes = readFileSync(path);
  const pieces: Buffer[] = [];
  const begins = [0];
  let at = 0;
  for (let from = 0; from < bytes.length; from += PIECE) {
    const piece = await packed(bytes.subarray(from, from + PIECE), { level: LEVEL });
    pieces.push(piece);
    at += piece.length;
    begins.push(at);
  }
  const head = JSON.stringify({ size: bytes.length, pieces: begins } satisfies z.infer<typeof HEAD>);
  const index = await packed(Buffer.concat([Buffer.from(`${head}\n`), readFileSync(indexOf(path))]), { level: LEVEL });
  // The archive itself comes last: where it is, its index is.
  writeWhole(archiveOf(indexOf(path)), index);
  writeWhole(archiveOf(path), Buffer.concat(pieces));
  removePlain(path);
}

/** Removes the file and its index; its archive stays. */
export function removePlain(path: string): void {
  rmSync(path, { force: true });
  rmSync(indexOf(path), { force: true });
}

/** Makes the first bytes of an archived file a plain one again, without an index. Nothing if it has no more than these. */
export function unpackArchive(path: string, size: number): void {
  const archived = openArchive(path);
  if (!archived) return;
  try {
    if (archived.file.size <= size) return;
    writeWhole(path, archived.file.read(0, size));
  } finally {
    archived.file.close();
  }
  removeArchive(path);
}

export function removeArchive(path: string): void {
  rmSync(archiveOf(path), { force: true });
  rmSync(archiveOf(indexOf(path)), { force: true });
}

/** `undefined` if there is no such file. */
export function openPlain(path: string): Bytes | undefined {
  const fd = openIfThere(path);
  if (fd === undefined) return undefined;
  return {
    size: fstatSync(fd).size,
    read: (offset, length) => readAt(fd, offset, length),
    close: () => closeSync(fd),
  };
}

/** The archive of this file, read as if it were the file itself; `undefined` if there is none. */
export function openArchive(path: string): { readonly file: Bytes; readonly index: Bytes } | undefined {
  const at = archiveOf(indexOf(path));
  const packedIndex = readIfThere(at);
  const fd = packedIndex && openIfThere(archiveOf(path));
  if (!packedIndex || fd === undefined) return undefined;
  try {
    const all = expanded(packedIndex) ?? Buffer.alloc(0);
    const cut = all.indexOf(10);
    const what = `The history's index ${at}`;
    const remedy = `Move ${at} and ${archiveOf(path)} elsewhere; the jobs in them are then no longer shown.`;
    const { size, pieces } = parseStored(HEAD, all.toString('utf8', 0, cut), { what, remedy });
    return { file: new Archived(fd, size, pieces), index: inMemory(all.subarray(cut + 1)) };
  } catch (thrown) {
    closeSync(fd);
    throw thrown;
  }
}

class Archived implements Bytes {
  readonly size: number;
  readonly #fd: number;
  readonly #pieces: readonly number[];
  /** The pieces expanded last: neighbouring lines are read one after another, and their cluster's ad with each. */
  #open: { readonly n: number; readonly bytes: Buffer }[] = [];

  constructor(fd: number, size: number, pieces: readonly number[]) {
    this.#fd = fd;
    this.size = size;
    this.#pieces = pieces;
  }

  read(offset: number, length: number): Buffer {
    const end = Math.min(this.size, offset + length);
    const parts: Buffer[] = [];
    for (let at = offset; at < end; ) {
      const n = Math.floor(at / PIECE);
      const bytes = this.#piece(n).subarray(at - n * PIECE, end - n * PIECE);
      if (bytes.length === 0) break;
      parts.push(bytes);
      at += bytes.length;
    }
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  }

  close(): void {
    closeSync(this.#fd);
  }

  #piece(n: number): Buffer {
    const known = this.#open.find((one) => one.n === n);
    if (known) return known.bytes;
    const [from = 0, to = 0] = this.#pieces.slice(n, n + 2);
    // In the place of a damaged piece, bytes that are no line, so that those after it stand where they did.
    const bytes = to > from ? (expanded(readAt(this.#fd, from, to - from)) ?? Buffer.alloc(PIECE)) : Buffer.alloc(0);
    this.#open = [{ n, bytes }, ...this.#open.slice(0, 2)];
    return bytes;
  }
}

/** `undefined` if it is damaged. */
function expanded(packed: Buffer): Buffer | undefined {
  try {
    return gunzipSync(packed);
  } catch {
    return undefined;
  }
}

function inMemory(bytes: Buffer): Bytes {
  return {
    size: bytes.length,
    read: (offset, length) => bytes.subarray(offset, offset + length),
    close: () => undefined,
  };
}

function openIfThere(path: string): number | undefined {
  return ifThere(() => openSync(path, 'r'));
}

function readIfThere(path: string): Buffer | undefined {
  return ifThere(() => readFileSync(path));
}

function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return undefined;
    throw thrown;
  }
}

function readAt(fd: number, offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(Math.max(0, length));
  let done = 0;
  while (done < length) {
    const n = readSync(fd, bytes, done, length - done, offset + done);
    if (n === 0) break;
    done += n;
  }
  return bytes.subarray(0, done);
}
