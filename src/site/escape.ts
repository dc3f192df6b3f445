const ODD = /[^ -~]|\\/;

/**
 * Encodes any text as one line of printable ASCII: the backslash and all other bytes become `\0ooo`, which printf(1)
 * decodes with %b (POSIX.1-2017, printf). Throws a RangeError for NUL, which is not allowed in arguments, names or
 * variables.
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

/** The inverse of `octalEscape`; bytes that are not UTF-8 become U+FFFD. */
export function octalDecode(line: string): string {
  if (!line.includes('\\')) return line;
  const bytes = line.replaceAll(/\\0([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8) & 0xff),
  );
  return Buffer.from(bytes, 'latin1').toString();
}

/** The same as `octalEscape`, without blanks, for one word of a list. */
export function octalWord(text: string): string {
  return octalEscape(text).replaceAll(' ', '\\0040');
}

/** Decodes the site's %XX. Bytes that are not UTF-8 stay encoded, so that two names never become one. */
export function percentDecode(word: string): string {
  if (!word.includes('%')) return word;
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}
