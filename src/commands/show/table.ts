import { columns, cut, padEnd, visible, type Width } from './width.ts';

/** A name that is shortened keeps at least this many columns. */
const LEAST = 8;

/** What a table gives up on a narrow terminal; columns are named by their headings. */
export interface Yielding {
  /** Columns to shorten, in this order, such as names: the numbers after them matter more. */
  readonly gives?: readonly string[];
  /** Columns to leave out if that is not enough, in this order. */
  readonly drops?: readonly string[];
}

/**
 * Lines of a table: columns two blanks apart, left-aligned, or right-aligned if the heading begins with a blank. If
 * that is too wide, the gaps shrink, then columns in `gives` are shortened, then those in `drops` are left out, and
 * finally lines are cut.
 */
export function tableLines(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  width: Width,
  { gives = [], drops = [] }: Yielding = {},
): string[] {
  const all = [heads, ...rows].map((row) => row.map(visible));
  const natural = heads.map((_, i) => Math.max(...all.map((row) => columns(row[i] ?? ''))));
  const at = (name: string) => heads.findIndex((head) => head.trim() === name);
  const shown = new Set(heads.keys());
  let fitted = fit(natural, shown, width, gives.map(at));
  for (const name of drops) {
    if (fitted.fits) break;
    shown.delete(at(name));
    fitted = fit(natural, shown, width, gives.map(at));
  }
  const { widths, gap } = fitted;
  return all.map((row) => {
    const cells = [...shown].map((i) => {
      const own = widths[i] ?? 0;
      const text = shortened(row[i] ?? '', own);
      return heads[i]?.startsWith(' ') ? ' '.repeat(Math.max(0, own - columns(text))) + text : padEnd(text, own);
    });
    return cut(cells.join(gap).trimEnd(), width);
  });
}

/** The widths of the visible columns. */
function fit(natural: readonly number[], shown: ReadonlySet<number>, width: Width, gives: readonly number[]) {
  const widths = [...natural];
  const needs = [...shown].reduce((sum, i) => sum + (natural[i] ?? 0), 0);
  const gaps = shown.size - 1;
  if (width === undefined || needs + 2 * gaps <= width) return { widths, gap: '  ', fits: true };
  let over = needs + gaps - width;
  for (const i of gives) {
    const own = widths[i] ?? 0;
    if (over <= 0 || !shown.has(i)) continue;
    widths[i] = Math.max(Math.min(LEAST, own), own - over);
    over -= own - widths[i];
  }
  return { widths, gap: ' ', fits: over <= 0 };
}

/** Shortens a text to this many columns, ending in a mark if something was cut. */
export function shortened(text: string, width: number): string {
  return columns(text) <= width ? text : `${cut(text, width - 1)}…`;
}
