const ODD = /[^ -~]|\\/;

/**
 * Any text on one line of printable ASCII: every other byte, and the backslash, as `\0ooo`, which printf(1) undoes
 * with %b (POSIX.1-2017, printf). A NUL has no place in arguments, names or variables: a RangeError.
 */
export function octalEscape(text: string): string {
  if (!ODD.test(text)) return text;
  let out = '';
  for (const byte of Buffer.from(text)) {
    if (byte === 0) throw new RangeError('A NUL byte cannot be part of an argument, a name or a variable.');
    const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x5c;
    out += plain ? String.fromCharCode(byte) : `\\0${byte.toString(8).padStart(3, '0')}`;
  }
  return out;
}

/** The same without blanks, for a word among words. */
export function octalWord(text: string): string {
  return octalEscape(text).replaceAll(' ', '\\0040');
}

/** Undoes the site's %XX. Bytes that are no UTF-8 stay as they came, so that two names never become one. */
export function percentDecode(word: string): string {
  if (!word.includes('%')) return word;
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}
