/** The width of the output in columns; `undefined` if it is no terminal, so that nothing is cut. */
export type Width = number | undefined;

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

const PLAIN = /^[ -~]*$/;
let segmenter: Intl.Segmenter | undefined;

/**
 * Splits a text into what a reader sees as characters. A segmenter takes milliseconds to create, so only non-ASCII text
 * gets one.
 */
function segmentsOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter();
  return segmenter.segment(text);
}

/** The columns that a text takes; control characters, which a terminal would obey, count as `?`. */
export function columns(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let sum = 0;
  for (const { segment } of segmentsOf(text)) sum += WIDE.test(segment) ? 2 : 1;
  return sum;
}

/** The text on one line of at most `width` columns. */
export function cut(text: string, width: Width): string {
  if (PLAIN.test(text)) return width === undefined ? text : text.slice(0, width);
  const line = visible(text);
  if (width === undefined || line.length <= width / 2) return line;
  let sum = 0;
  let kept = '';
  for (const { segment } of segmentsOf(line)) {
    sum += WIDE.test(segment) ? 2 : 1;
    if (sum > width) return kept;
    kept += segment;
  }
  return line;
}

/** Wraps a text between words into lines of at most `width` columns; later lines are indented like the first. */
export function wrapped(text: string, width: Width): string[] {
  const line = visible(text);
  if (width === undefined || columns(line) <= width) return [line];
  const indent = ' '.repeat(/^[ !→]*/.exec(line)?.[0].length ?? 0);
  const lines: string[] = [];
  let now = '';
  for (const word of line.slice(indent.length).split(' ')) {
    const more = now === '' ? word : `${now} ${word}`;
    if (now !== '' && columns(more) > width - indent.length) {
      lines.push(now);
      now = word;
    } else now = more;
  }
  return [...lines, now].map((one, i) => `${i === 0 ? line.slice(0, indent.length) : indent}${one}`);
}

/** Names and reasons come from outside: none may move the cursor. */
export function visible(text: string): string {
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, (c) => (c === '\n' || c === '\t' ? ' ' : '?'));
}

export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - columns(text)));
}

/** Makes a text of several lines safe for a terminal: control characters are written as `\\x1b`. */
export function harmless(text: string): string {
  return text.replaceAll(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g,
    (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}
