import { GryphusError } from '../../errors.ts';

/** One value of the Distinguished Encoding Rules (ITU-T X.690); `raw` is all of it, `content` only the inside. */
export interface Der {
  readonly tag: number;
  readonly raw: Uint8Array;
  readonly content: Uint8Array;
}

export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  enumerated: 0x0a,
  utf8String: 0x0c,
  printableString: 0x13,
  teletexString: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  universalString: 0x1c,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const;

/** The tag of a constructed, context-specific element `[n]`. */
export const context = (n: number): number => 0xa0 | n;

const broken = (what: string): GryphusError => new GryphusError('credential-invalid', `The data is damaged: ${what}.`);

/** The value at `offset`. Supports definite lengths and one-byte tags, which suffices for certificates. */
export function readDer(bytes: Uint8Array, offset = 0): Der {
  const tag = bytes[offset];
  const first = bytes[offset + 1];
  if (tag === undefined || first === undefined) throw broken('it is truncated');
  if ((tag & 0x1f) === 0x1f) throw broken('it has an invalid tag');
  let start = offset + 2;
  let length = first;
  if (first >= 0x80) {
    const count = first & 0x7f;
    if (count === 0 || count > 4) throw broken('it has an invalid length');
    length = 0;
    for (let i = 0; i < count; i++) length = length * 256 + (bytes[start + i] ?? Number.NaN);
    start += count;
  }
  if (!(start + length <= bytes.length)) throw broken('it is truncated');
  return { tag, raw: bytes.subarray(offset, start + length), content: bytes.subarray(start, start + length) };
}

/** The only value in `bytes`, with nothing after it. */
export function readOne(bytes: Uint8Array, tag?: number): Der {
  const der = readDer(bytes);
  if (der.raw.length !== bytes.length) throw broken('it has trailing data');
  return tag === undefined ? der : expectTag(der, tag);
}

/** The values inside a constructed one. */
export function children(der: Der): readonly Der[] {
  const found: Der[] = [];
  for (let at = 0; at < der.content.length; ) {
    const child = readDer(der.content, at);
    found.push(child);
    at += child.raw.length;
  }
  return found;
}

export function expectTag(der: Der | undefined, tag: number): Der {
  if (der?.tag === tag) return der;
  throw broken(
    `tag ${tag.toString(16)} was expected, ${der === undefined ? 'nothing' : der.tag.toString(16)} is there`,
  );
}

export function readOid(der: Der | undefined): string {
  const { content } = expectTag(der, TAG.oid);
  const parts: bigint[] = [];
  let value = 0n;
  for (const byte of content) {
    value = (value << 7n) | BigInt(byte & 0x7f);
    if ((byte & 0x80) === 0) {
      parts.push(value);
      value = 0n;
    }
  }
  const [head, ...rest] = parts;
  if (head === undefined || ((content.at(-1) ?? 0) & 0x80) !== 0) throw broken('an object identifier is truncated');
  const top = head < 80n ? head / 40n : 2n;
  return [top, head - top * 40n, ...rest].join('.');
}

export function readInteger(der: Der | undefined): bigint {
  const { content } = expectTag(der, TAG.integer);
  if (content.length === 0) throw broken('an integer is empty');
  const value = BigInt(`0x${Buffer.from(content).toString('hex')}`);
  return (content[0] ?? 0) < 0x80 ? value : value - (1n << BigInt(8 * content.length));
}

/** A small count, as a number. */
export function readSmall(der: Der | undefined): number {
  const value = readInteger(der);
  if (value < 0n || value > 0x7fffffffn) throw broken('a count is out of range');
  return Number(value);
}

/** The bytes of a bit string without unused bits (keys, signatures). */
export function readBits(der: Der | undefined): Uint8Array {
  const { content } = expectTag(der, TAG.bitString);
  if (content.length === 0) throw broken('a bit string is empty');
  return content.subarray(1);
}

export function readText(der: Der): string {
  const bytes = Buffer.from(der.content);
  if (der.tag === TAG.bmpString) {
    if (bytes.length % 2 !== 0) throw broken('a BMPString ends in half a character');
    return bytes.swap16().toString('utf16le');
  }
  return bytes.toString(der.tag === TAG.teletexString ? 'latin1' : 'utf8');
}

const TIME = /^(\d{2}|\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(?:\.\d+)?Z$/;

/** UTCTime or GeneralizedTime as Unix seconds (RFC 5280, 4.1.2.5). */
export function readTime(der: Der | undefined): number {
  const digits = der === undefined ? '' : Buffer.from(der.content).toString('latin1');
  const found = TIME.exec(digits);
  const short = der?.tag === TAG.utcTime;
  if (!found || (!short && der?.tag !== TAG.generalizedTime) || (found[1]?.length === 2) !== short) {
    throw broken('a time is malformed');
  }
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found.slice(1).map(Number);
  const full = short ? year + (year < 50 ? 2000 : 1900) : year;
  return new Date(0).setUTCFullYear(full, month - 1, day) / 1000 + hour * 3600 + minute * 60 + second;
}
