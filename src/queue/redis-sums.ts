import { createHash } from 'node:crypto';
import { readFileSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

/** Where Redis, since version 7, keeps the queue; the sums stand among its files, so that copies and moves take them along. */
export const CHANGES_DIR = 'appendonlydir';
const MANIFEST = 'appendonly.aof.manifest';
const SUMS = 'gryphus.sums';

/** The longest segment, in bytes. */
export const SEGMENT = 1 << 16;

/** A file of Redis that its manifest names. */
export interface ServerFile {
  readonly name: string;
  /** Whether it grows: Redis may drop its end when it starts. */
  readonly grows: boolean;
}

/** Check sums of the bytes from the end of the segment before, or 0, to `to`. */
export interface Segment {
  readonly to: number;
  readonly crc: number;
  /** Half of a SHA-256, in hexadecimal. */
  readonly hash: string;
}

export interface FileSums {
  /** The inode when the first segment was summed: a file with another one may be a copy, or one of other content. */
  readonly inode: number;
  readonly segments: Segment[];
}

/** What is known of Redis' files. */
export interface Sums {
  readonly files: Map<string, FileSums>;
  /** The text that names these files. */
  manifest: string | undefined;
  /** The run id of the Redis since whose start the ends of files have been looked at; '' since the latest start. */
  run: string;
  /** Whether the last line was whole. */
  whole: boolean;
}

export function sumsFile(dir: string): string {
  return join(dir, CHANGES_DIR, SUMS);
}

export function manifestFile(dir: string): string {
  return join(dir, CHANGES_DIR, MANIFEST);
}

/** '' before Redis 7. */
export function manifestOf(dir: string): string {
  return readOr(manifestFile(dir)) ?? '';
}

/**
 * Where two manifests differ, if it is in one byte. Redis writes the number of each file twice, so of two that it wrote, more bytes differ.
 */
export function changedByte(one: string, other: string): number | undefined {
  if (one.length !== other.length) return undefined;
  let place: number | undefined;
  for (let at = 0; at < one.length; at++) {
    if (one[at] === other[at]) continue;
    if (place !== undefined) return undefined;
    place = at;
  }
  return place;
}

/** The files that Redis reads when it starts, in this order; none before version 7. */
export function serverFiles(manifest: string): ServerFile[] {
  return manifest.split('\n').flatMap((line) => {
    const [, name, type] = /^file (\S+) seq \d+ type ([bi])$/.exec(line) ?? [];
    return name === undefined || name.includes('/') ? [] : [{ name, grows: type === 'i' }];
  });
}

export function segmentOf(bytes: Uint8Array, to: number): Segment {
  return { to, crc: crc32(bytes), hash: hashOf(bytes) };
}

export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 32);
}

/** The end of what is summed, in bytes. */
export function endOf(file: FileSums | undefined): number {
  return file?.segments.at(-1)?.to ?? 0;
}

/** Where a segment begins, in bytes. */
export function startOf({ segments }: FileSums, index: number): number {
  return segments[index - 1]?.to ?? 0;
}

/** Drops what is known beyond a size. */
export function cutSums({ segments }: FileSums, size: number): void {
  while ((segments.at(-1)?.to ?? 0) > size) segments.pop();
}

export const LINES = {
  /** A segment; one that begins where the last one does takes its place. */
  segment: (name: string, inode: number, from: number, { to, crc, hash }: Segment) =>
    lineOf(`s ${name} ${inode} ${from} ${to} ${crc} ${hash}`),
  /** What is known of a file beyond this byte does not hold any more. */
  cut: (name: string, size: number) => lineOf(`cut ${name} ${size}`),
  run: (id: string) => lineOf(`run ${id}`),
  manifest: (text: string) => lineOf(`manifest ${Buffer.from(text, 'latin1').toString('base64')}`),
};

/** All of it anew. */
export function sumsText({ files, manifest, run }: Sums): string {
  const lines = [...files].flatMap(([name, file]) =>
    file.segments.map((segment, i) => LINES.segment(name, file.inode, startOf(file, i), segment)),
  );
  return [...(manifest === undefined ? [] : [LINES.manifest(manifest)]), ...lines, LINES.run(run)].join('');
}

/** What is not whole, and all after it, is ignored; so is a segment that does not continue those before. `undefined`: there is none. */
export function readSums(dir: string): Sums | undefined {
  const text = readOr(sumsFile(dir));
  return text === undefined ? undefined : parseSums(text);
}

export function parseSums(text: string): Sums {
  const sums: Sums = { files: new Map(), manifest: undefined, run: '', whole: true };
  const lines = text.split('\n');
  sums.whole = lines.pop() === '';
  for (const line of lines) {
    const rest = line.slice(9);
    if (line !== lineOf(rest).slice(0, -1)) {
      sums.whole = false;
      break;
    }
    take(sums, rest.split(' '));
  }
  return sums;
}

function take(sums: Sums, [kind, name = '', ...rest]: readonly string[]): void {
  if (kind === 'run') sums.run = name;
  if (kind === 'manifest') sums.manifest = Buffer.from(name, 'base64').toString('latin1');
  const file = sums.files.get(name);
  if (kind === 'cut' && file) cutSums(file, Number(rest[0]));
  if (kind !== 's') return;
  const [inode = 0, from = 0, to = 0, crc = 0] = rest.map(Number);
  const known: FileSums = file ?? { inode, segments: [] };
  sums.files.set(name, known);
  if (from < endOf(known) && from === startOf(known, known.segments.length - 1)) known.segments.pop();
  if (from === endOf(known)) known.segments.push({ to, crc, hash: rest[4] ?? '' });
}

/** With its own check sum before it. */
function lineOf(text: string): string {
  return `${crc32(text).toString(16).padStart(8, '0')} ${text}\n`;
}

function readOr(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined;
  }
}

export function statOf(dir: string, name: string): Stats | undefined {
  return statSync(join(dir, CHANGES_DIR, name), { throwIfNoEntry: false });
}
