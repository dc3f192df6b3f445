import { createReadStream, readSync } from 'node:fs';

/** The entries of an archive, in order. */
export interface TarEntry {
  readonly name: string;
  readonly mode: number;
  /** `pieces` have exactly that many bytes. */
  readonly content:
    | Buffer
    | { readonly path: string; readonly bytes: number }
    | { readonly pieces: Iterable<Buffer>; readonly bytes: number };
}

/** A file in an archive, with the position of its content. */
export interface TarMember {
  readonly name: string;
  readonly mode: number;
  readonly offset: number;
  readonly bytes: number;
}

const BLOCK = 512;
const MAGIC = 'ustar  \0';
const LONGEST_NAME = 64 * 1024;

export function tarBytes(entries: readonly TarEntry[]): number {
  return entries.reduce((sum, entry) => sum + headers(entry).length + padded(sizeOf(entry)), 2 * BLOCK);
}

/** The bytes of an archive, file after file, in GNU's format, which every current tar reads; any name, any size. */
export async function* tarStream(entries: Iterable<TarEntry> | AsyncIterable<TarEntry>): AsyncGenerator<Buffer> {
  for await (const entry of entries) {
    yield headers(entry);
    const bytes = sizeOf(entry);
    if (Buffer.isBuffer(entry.content)) yield entry.content;
    else if ('pieces' in entry.content) yield* entry.content.pieces;
    else if (bytes > 0) yield* exactly(entry.content.path, bytes);
    yield Buffer.alloc(padded(bytes) - bytes);
  }
  yield Buffer.alloc(2 * BLOCK);
}

async function* exactly(path: string, bytes: number): AsyncGenerator<Buffer> {
  let sent = 0;
  for await (const chunk of createReadStream(path, { end: bytes - 1 }) as AsyncIterable<Buffer>) {
    sent += chunk.length;
    yield chunk;
  }
  // A different length would shift everything that follows.
  if (sent !== bytes) throw new Error(`${path} has ${sent} bytes instead of ${bytes}`);
}

function sizeOf({ content }: TarEntry): number {
  return Buffer.isBuffer(content) ? content.length : content.bytes;
}

function padded(bytes: number): number {
  return Math.ceil(bytes / BLOCK) * BLOCK;
}

function headers(entry: TarEntry): Buffer {
  const name = Buffer.from(entry.name);
  if (name.length <= 100) return header(name, entry.mode, sizeOf(entry), '0');
  const long = Buffer.alloc(padded(name.length + 1));
  name.copy(long);
  const first = header(Buffer.from('././@LongLink'), 0, name.length + 1, 'L');
  return Buffer.concat([first, long, header(name.subarray(0, 100), entry.mode, sizeOf(entry), '0')]);
}

function header(name: Buffer, mode: number, size: number, type: string): Buffer {
  const block = Buffer.alloc(BLOCK);
  name.copy(block, 0);
  block.write(`${mode.toString(8).padStart(7, '0')}\0`, 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  if (size < 0o77777777777) block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  else {
    block[124] = 0x80;
    block.writeUIntBE(size, 130, 6);
  }
  block.write('00000000000\0', 136);
  block.write('        ', 148);
  block.write(type, 156);
  block.write(MAGIC, 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** The files of an archive that a site made, without directories; `undefined` if it is damaged or incomplete. */
export function tarMembers(fd: number): TarMember[] | undefined {
  const members: TarMember[] = [];
  let offset = 0;
  let longName: string | undefined;
  for (;;) {
    const block = readAt(fd, offset, BLOCK);
    if (block.length < BLOCK) return undefined;
    offset += BLOCK;
    if (block.every((byte) => byte === 0)) return members;
    const bytes = sizeIn(block);
    if (bytes === undefined || !sumIsRight(block)) return undefined;
    const type = String.fromCharCode(block[156] ?? 0);
    const name = longName ?? shortName(block);
    if (type === 'L' || type === 'x') {
      const text = readAt(fd, offset, Math.min(bytes, LONGEST_NAME));
      if (text.length < Math.min(bytes, LONGEST_NAME)) return undefined;
      longName = type === 'L' ? text.toString('utf8').replace(/\0.*$/s, '') : (paxPath(text) ?? longName);
    } else {
      longName = undefined;
      if (type === '0' || type === '\0') members.push({ name, mode: octal(block, 100, 8), offset, bytes });
      else if (type === '1') {
        const first = members.find((one) => one.name === linkName(block));
        if (first) members.push({ ...first, name });
      }
    }
    if (type !== '1') offset += padded(bytes);
  }
}

/** Reads this many bytes at the offset; fewer at the end of the file. */
export function readAt(fd: number, offset: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  let done = 0;
  while (done < bytes) {
    const got = readSync(fd, buffer, done, bytes - done, offset + done);
    if (got === 0) break;
    done += got;
  }
  return buffer.subarray(0, done);
}

function field(block: Buffer, at: number, length: number): string {
  const bytes = block.subarray(at, at + length);
  const end = bytes.indexOf(0);
  return bytes.subarray(0, end === -1 ? length : end).toString('utf8');
}

function octal(block: Buffer, at: number, length: number): number {
  return Number.parseInt(field(block, at, length).trim() || '0', 8);
}

function sizeIn(block: Buffer): number | undefined {
  if ((block[124] ?? 0) & 0x80) return block.readUIntBE(130, 6);
  const size = octal(block, 124, 12);
  return Number.isSafeInteger(size) && size >= 0 ? size : undefined;
}

function sumIsRight(block: Buffer): boolean {
  const blank = Buffer.from(block);
  blank.fill(0x20, 148, 156);
  return blank.reduce((total, byte) => total + byte, 0) === octal(block, 148, 8);
}

/** POSIX archives have a name prefix in a place that GNU uses for other fields. */
function shortName(block: Buffer): string {
  const name = field(block, 0, 100);
  const prefix = field(block, 257, 8) === 'ustar' ? field(block, 345, 155) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

function linkName(block: Buffer): string {
  return field(block, 157, 100);
}

/** The `path` record of a pax header: `LENGTH path=NAME` LF. */
function paxPath(text: Buffer): string | undefined {
  for (let at = 0; at < text.length; ) {
    const blank = text.indexOf(0x20, at);
    const length = Number(text.subarray(at, blank).toString('latin1'));
    if (blank === -1 || !(length > 0)) return undefined;
    const record = text.subarray(blank + 1, at + length - 1);
    if (record.subarray(0, 5).toString('latin1') === 'path=') return record.subarray(5).toString('utf8');
    at += length;
  }
  return undefined;
}
