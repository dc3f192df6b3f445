/**
 * The only way for data to enter a shell command line: a POSIX word that means exactly `text`, whatever bytes it
 * contains (POSIX.1-2017, XCU 2.2.2). A shell word cannot contain NUL, so that throws a RangeError.
 */
export function shellQuote(text: string): string {
  if (text.includes('\0')) throw new RangeError('A NUL byte cannot be part of a shell word.');
  if (/^[A-Za-z0-9_./:@%+,-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A command line made of these words. */
export function shellWords(words: readonly string[]): string {
  return words.map(shellQuote).join(' ');
}

/** A path that may begin with `~/`, as a shell word. */
export function shellPath(path: string): string {
  if (path === '~') return '"$HOME"';
  return path.startsWith('~/') ? `"$HOME"/${shellQuote(path.slice(2))}` : shellQuote(path);
}
