import { TAG } from './der.ts';

/** One element with this tag and content (ITU-T X.690, 8.1). */
export function tlv(tag: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const head = [tag];
  if (length < 0x80) head.push(length);
  else {
    const bytes: number[] = [];
    for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
    head.push(0x80 | bytes.length, ...bytes);
  }
  return Buffer.concat([Buffer.from(head), ...parts]);
}

export const sequence = (...parts: readonly Uint8Array[]): Uint8Array => tlv(TAG.sequence, ...parts);
export const setOf = (...parts: readonly Uint8Array[]): Uint8Array => tlv(TAG.set, ...parts);
export const octets = (content: Uint8Array): Uint8Array => tlv(TAG.octetString, content);
export const truth = (): Uint8Array => Buffer.from([TAG.boolean, 1, 0xff]);
export const nothing = (): Uint8Array => Buffer.from([TAG.null, 0]);
export const text = (tag: number, value: string): Uint8Array => tlv(tag, Buffer.from(value, 'utf8'));

/** A bit string; the last `unused` bits do not count. */
export const bits = (content: Uint8Array, unused = 0): Uint8Array => tlv(TAG.bitString, Buffer.from([unused]), content);

/** A non-negative integer. */
export function integer(value: bigint | number): Uint8Array {
  let hex = BigInt(value).toString(16);
  if (hex.length % 2 === 1) hex = `0${hex}`;
  if (Number.parseInt(hex.slice(0, 2), 16) >= 0x80) hex = `00${hex}`;
  return tlv(TAG.integer, Buffer.from(hex, 'hex'));
}

export function oid(dotted: string): Uint8Array {
  const [top = 0n, second = 0n, ...rest] = dotted.split('.').map(BigInt);
  const bytes: number[] = [];
  for (const part of [top * 40n + second, ...rest]) {
    const group = [Number(part & 0x7fn)];
    for (let left = part >> 7n; left > 0n; left >>= 7n) group.unshift(Number(left & 0x7fn) | 0x80);
    bytes.push(...group);
  }
  return tlv(TAG.oid, Buffer.from(bytes));
}

/** UTCTime until 2049, GeneralizedTime from 2050 (RFC 5280, 4.1.2.5); Unix seconds. */
export function time(seconds: number): Uint8Array {
  const digits = new Date(seconds * 1000).toISOString().replace(/[-:T]/g, '').slice(0, 14);
  return digits < '20500101' && digits >= '1950'
    ? text(TAG.utcTime, `${digits.slice(2)}Z`)
    : text(TAG.generalizedTime, `${digits}Z`);
}
