import { columns, cut, padEnd, visible, type Width } from './width.ts';

/** Lines of a table: left-aligned columns (right-aligned where the head begins with a blank), two blanks apart. */
export function tableLines(heads: readonly string[], rows: readonly (readonly string[])[], width: Width): string[] {
  const all = [heads, ...rows].map((row) => row.map(visible));
  const widths = heads.map((_, i) => Math.max(...all.map((row) => columns(row[i] ?? ''))));
  return all.map((row) => {
    const cells = row.map((cell, i) => {
      const room = widths[i] ?? 0;
      return heads[i]?.startsWith(' ') ? ' '.repeat(Math.max(0, room - columns(cell))) + cell : padEnd(cell, room);
    });
    return cut(cells.join('  ').trimEnd(), width);
  });
}
