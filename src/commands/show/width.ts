/** The width of what is written to, in columns; `undefined` where it is no terminal: nothing is cut then. */
export type Width = number | undefined;

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

const PLAIN = /^[ -~]*$/;
let segmenter: Intl.Segmenter | undefined;

/** What a reader takes for one character. The segmenter takes milliseconds to make: only what is not plain has one. */
function segmentsOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter();
  return segmenter.segment(text);
}

/** Columns that a text takes; what a terminal would obey (control characters) is shown as `?`. */
export function columns(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let sum = 0;
  for (const { segment } of segmentsOf(text)) sum += WIDE.test(segment) ? 2 : 1;
  return sum;
}

/** One line of it, at most `width` columns. */
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

/** Names and reasons come from anywhere: none may move the cursor. */
export function visible(text: string): string {
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, (c) => (c === '\n' || c === '\t' ? ' ' : '?'));
}

export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - columns(text)));
}
