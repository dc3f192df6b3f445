/** What C's isspace accepts; JavaScript's trim accepts more (no-break space, BOM). */
const SPACE = /[ \t\n\v\f\r]/;
const ALL_SPACE = /^[ \t\n\v\f\r]*$/;
const LEADING = /^[ \t\n\v\f\r]+/;

export function isSpace(char: string): boolean {
  return SPACE.test(char);
}

export function isBlank(text: string): boolean {
  return ALL_SPACE.test(text);
}

export function trimStart(text: string): string {
  return isSpace(text.charAt(0)) ? text.replace(LEADING, '') : text;
}

export function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

export function trim(text: string): string {
  return trimStart(trimEnd(text));
}

/** Trims the text and removes double quotes that enclose all of it. */
export function stripQuotes(text: string): string {
  const inner = trim(text);
  return inner.length >= 2 && inner.startsWith('"') && inner.endsWith('"') ? inner.slice(1, -1) : inner;
}

/** The non-empty parts between any of `separators`, each trimmed. */
export function tokens(text: string, separators = ', \t\r\n'): string[] {
  const parts: string[] = [];
  let start = 0;
  for (let at = 0; at <= text.length; at++) {
    if (at < text.length && !separators.includes(text.charAt(at))) continue;
    const token = at > start ? trim(text.slice(start, at)) : '';
    if (token !== '') parts.push(token);
    start = at + 1;
  }
  return parts;
}

export function isMacroName(text: string): boolean {
  return /^[A-Za-z0-9_./]+$/.test(text);
}

/** The position of a UTF-16 unit in code point order: surrogates (beyond U+FFFF) come last. */
function weight(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** Byte order, in which C's strcmp sorts UTF-8: that of code points. */
export function byBytes(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = weight(a.charCodeAt(i)) - weight(b.charCodeAt(i));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
