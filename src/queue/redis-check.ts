import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { GryphusError } from '../errors.ts';
import { writeWhole } from '../util/private-file.ts';
import { shellPath } from '../util/shell-quote.ts';
import { oneByteChanges } from './one-byte.ts';
import { readAt } from './redis-cover.ts';
import {
  CHANGES_DIR,
  changedByte,
  cutSums,
  type FileSums,
  hashOf,
  manifestFile,
  manifestOf,
  readSums,
  SEGMENT,
  type ServerFile,
  serverFiles,
  startOf,
  statOf,
  type Sums,
  sumsFile,
  sumsText,
} from './redis-sums.ts';

/** Bytes that are read at once. */
const PIECE = SEGMENT * 16;

/** A byte that changed by itself, and was put back. */
export interface PutBack {
  /** Absolute. */
  readonly file: string;
  readonly byte: number;
  readonly was: number;
  readonly is: number;
}

interface Bad {
  readonly index: number;
  readonly change?: Omit<PutBack, 'file'>;
}

/**
 * Compares the files of a Redis that does not run with their check sums. In each segment one changed byte is put back. Throws
 * 'queue-unavailable' if more is wrong, and changes nothing then. Redis must be started next: its end may be cut from then on.
 */
export function checkServerFiles(dir: string): PutBack[] {
  const sums = readSums(dir);
  if (!sums) return [];
  const known = new Map<string, FileSums>();
  const changes: PutBack[] = manifestChange(dir, sums);
  for (const file of serverFiles(changes.length > 0 ? (sums.manifest ?? '') : manifestOf(dir))) {
    const of = sums.files.get(file.name);
    const found = statOf(dir, file.name);
    if (!of || !found) continue;
    cutSums(of, found.size);
    const path = join(dir, CHANGES_DIR, file.name);
    const bad = badSegments(path, of);
    const another = found.ino !== of.inode && bad.length === of.segments.length && bad.every(({ change }) => !change);
    // Another file of that name, which somebody put there.
    if (another) continue;
    const left = sums.run === '' ? withoutEnd(file, of, bad) : bad;
    const lost = left.find(({ change }) => !change);
    if (lost) throw damaged(dir, path, startOf(of, lost.index), of.segments[lost.index]?.to ?? 0);
    changes.push(...left.flatMap(({ change }) => (change ? [{ file: path, ...change }] : [])));
    known.set(file.name, of);
  }
  for (const change of changes) putBack(change);
  expectCut(dir, { files: known, manifest: sums.manifest, run: '', whole: true });
  return changes;
}

/** The one change that makes the manifest what it was. Another difference is Redis' own, or it refuses to read it. */
function manifestChange(dir: string, { manifest: was = '' }: Sums): PutBack[] {
  const found = manifestOf(dir);
  const byte = changedByte(was, found);
  return byte === undefined
    ? []
    : [{ file: manifestFile(dir), byte, was: found.charCodeAt(byte), is: was.charCodeAt(byte) }];
}

function badSegments(path: string, of: FileSums): Bad[] {
  const fd = openSync(path, 'r');
  const bad: Bad[] = [];
  try {
    let piece: Buffer = Buffer.alloc(0);
    let at = 0;
    for (const [index, { to, crc, hash }] of of.segments.entries()) {
      const from = startOf(of, index);
      if (to > at + piece.length) {
        piece = readAt(fd, from, Math.max(PIECE, to - from));
        at = from;
      }
      const bytes = piece.subarray(from - at, to - at);
      const sum = crc32(bytes);
      if (sum !== crc) bad.push({ index, ...changeOf(bytes, from, sum ^ crc, hash) });
    }
    return bad;
  } finally {
    closeSync(fd);
  }
}

/** The one change that makes the segment what it was. */
function changeOf(bytes: Buffer, from: number, difference: number, hash: string): Omit<Bad, 'index'> {
  for (const { at, bits } of oneByteChanges(bytes.length, difference)) {
    const was = bytes[at] ?? 0;
    const tried = Buffer.from(bytes);
    tried[at] = was ^ bits;
    if (hashOf(tried) === hash) return { change: { byte: from + at, was, is: was ^ bits } };
  }
  return {};
}

/**
 * The last Redis may have dropped the end of a file when it started, and written on, and nobody has looked since: what was known of
 * this end is dropped. Returns what is wrong before it.
 */
function withoutEnd({ grows }: ServerFile, of: FileSums, bad: readonly Bad[]): readonly Bad[] {
  if (!grows) return bad;
  let left = bad;
  for (let last = left.at(-1); last && !last.change; last = left.at(-1)) {
    if (last.index !== of.segments.length - 1) break;
    of.segments.pop();
    left = left.slice(0, -1);
  }
  return left;
}

function putBack({ file, byte, is }: PutBack): void {
  const fd = openSync(file, 'r+');
  try {
    writeSync(fd, Uint8Array.of(is), 0, 1, byte);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** On disk before Redis starts. Sums that could not say so would be taken for true after a crash. */
function expectCut(dir: string, sums: Parameters<typeof sumsText>[0]): void {
  try {
    writeWhole(sumsFile(dir), sumsText(sums));
  } catch {
    rmSync(sumsFile(dir), { force: true });
  }
}

function damaged(dir: string, file: string, from: number, to: number): GryphusError {
  const state = join(dir, '..');
  return new GryphusError(
    'queue-unavailable',
    `The queue's file ${file} is damaged between bytes ${from} and ${to}: its check sums do not agree. Nothing was changed.`,
    {
      suggestions: [
        `Use a backup: mv ${shellPath(state)} ${shellPath(`${state}.damaged`)}; gryphus restore FILE`,
        `Or keep a copy: cp -a ${shellPath(dir)} ${shellPath(`${dir}.damaged`)}`,
        `Then go on with what is there: rm ${shellPath(sumsFile(dir))}; gryphus up. Jobs in that part may have wrong values, or Redis does not read it.`,
      ],
    },
  );
}
