import { columns, cut, padEnd, visible, type Width } from './width.ts';

/** A name that must give way is never cut below so many columns. */
const LEAST = 8;

/**
 * Lines of a table: left-aligned columns (right-aligned where the head begins with a blank), two blanks apart. Where that
 * is too wide, they come closer, and then the column `gives` (a name, say) is cut: the numbers after it are worth more.
 */
export function tableLines(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  width: Width,
  gives?: number,
): string[] {
  const all = [heads, ...rows].map((row) => row.map(visible));
  const widths = heads.map((_, i) => Math.max(...all.map((row) => columns(row[i] ?? ''))));
  const needs = widths.reduce((sum, one) => sum + one, 0);
  const gaps = heads.length - 1;
  const gap = width === undefined || needs + 2 * gaps <= width ? '  ' : ' ';
  if (width !== undefined && gives !== undefined) {
    const over = needs + gap.length * gaps - width;
    if (over > 0) widths[gives] = Math.max(Math.min(LEAST, widths[gives] ?? 0), (widths[gives] ?? 0) - over);
  }
  return all.map((row) => {
    const cells = row.map((cell, i) => {
      const room = widths[i] ?? 0;
      const text = i === gives ? shortened(cell, room) : cell;
      return heads[i]?.startsWith(' ') ? ' '.repeat(Math.max(0, room - columns(text))) + text : padEnd(text, room);
    });
    return cut(cells.join(gap).trimEnd(), width);
  });
}

/** At most so many columns; a mark at the end says that there was more. */
export function shortened(text: string, room: number): string {
  return columns(text) <= room ? text : `${cut(text, room - 1)}…`;
}
