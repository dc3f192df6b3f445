/*
 * The library's strings are bytes (UTF-8), and so are their sizes, offsets, order and case folding. Ours are JavaScript
 * strings; a byte that is not part of valid UTF-8 is kept as the lone surrogate U+DC00 + byte.
 */

// oxlint-disable-next-line no-control-regex
const NON_ASCII = /[^\x00-\x7f]/;

export function isAscii(text: string): boolean {
  return !NON_ASCII.test(text);
}

/** The UTF-8 bytes of a string, each as one character (U+0000 to U+00FF). */
export function toBytes(text: string): string {
  if (isAscii(text)) return text;
  let out = '';
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    if (code < 0x80) out += char;
    else if (code < 0x800) out += String.fromCharCode(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code >= 0xdc80 && code <= 0xdcff) out += String.fromCharCode(code - 0xdc00);
    else if (code < 0x10000)
      out += String.fromCharCode(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else
      out += String.fromCharCode(
        0xf0 | (code >> 18),
        0x80 | ((code >> 12) & 63),
        0x80 | ((code >> 6) & 63),
        0x80 | (code & 63),
      );
  }
  return out;
}

/** The inverse of `toBytes`. */
export function fromBytes(bytes: string): string {
  if (isAscii(bytes)) return bytes;
  let out = '';
  for (let at = 0; at < bytes.length; ) {
    const first = bytes.charCodeAt(at);
    const length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
    const code = length === 0 ? -1 : decode(bytes, at, length);
    if (code < 0) {
      out += String.fromCharCode(0xdc00 + first);
      at += 1;
    } else {
      out += String.fromCodePoint(code);
      at += length;
    }
  }
  return out;
}

/** Joins characters that were cut in two, in text assembled from pieces that were split by bytes. */
export function rejoined(text: string): string {
  return /[\udc80-\udcff]{2}/.test(text) ? fromBytes(toBytes(text)) : text;
}

const LEAST = [0, 0, 0x80, 0x800, 0x10000];

function decode(bytes: string, at: number, length: number): number {
  if (length === 1) return bytes.charCodeAt(at);
  let code = bytes.charCodeAt(at) & (0xff >> (length + 1));
  for (let next = 1; next < length; next += 1) {
    const byte = bytes.charCodeAt(at + next);
    if (!(byte >= 0x80 && byte < 0xc0)) return -1;
    code = (code << 6) | (byte & 63);
  }
  if (code < (LEAST[length] ?? 0) || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return -1;
  return code;
}

/** Lowers ASCII letters and leaves all others alone: the folding of attribute names, and of `==` on strings. */
export function fold(text: string): string {
  return isAscii(text) ? text.toLowerCase() : text.replace(/[A-Z]+/g, (upper) => upper.toLowerCase());
}

/** strcmp on the UTF-8 bytes: negative, 0 or positive. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  const left = toBytes(a);
  const right = toBytes(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** strcasecmp: like `compareText`, with ASCII letters folded. */
export function compareTextFolded(a: string, b: string): number {
  return a === b ? 0 : compareText(fold(a), fold(b));
}

/** Equality of strings under `==`. */
export function sameText(a: string, b: string): boolean {
  return a === b || (a.length === b.length && fold(a) === fold(b));
}

/** C's isspace in the C locale. */
export function isSpace(char: string): boolean {
  return char === ' ' || (char >= '\t' && char <= '\r' && char.length === 1);
}

const MAX_KEYS = 100_000;
const keys = new Map<string, string>();

/**
 * A folded name, as ads store it. Equal text gives the same string object, so that a lookup need not compare
 * characters.
 */
export function attrKey(name: string): string {
  const known = keys.get(name);
  if (known !== undefined) return known;
  if (keys.size >= MAX_KEYS) keys.clear();
  const folded = fold(name);
  const key = keys.get(folded) ?? folded;
  keys.set(key, key);
  keys.set(name, key);
  return key;
}
