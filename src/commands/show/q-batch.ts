import type { Batch } from '../../index.ts';
import { shortDate } from './dates.ts';
import { shortened } from './table.ts';
import { columns, cut, padEnd, visible, type Width } from './width.ts';

/**
 * The lines of `condor_q` including the headings. The HOLD column appears if a job is held, or if there are no lines.
 */
export function batchLines(rows: readonly Batch[], width: Width): string[] {
  const hold = rows.length === 0 || rows.some((row) => row.held > 0);
  const heads = ['   DONE', '   RUN ', '   IDLE', ...(hold ? ['   HOLD'] : []), '  TOTAL'];
  const counts = rows.map(({ done, running, idle, held, total }) =>
    [done, running, idle, ...(hold ? [held] : []), total].map((n) => (n > 0 ? String(n) : '_')),
  );
  // A number of any size has a blank before it.
  const widths = heads.map((head, i) => Math.max(head.length, ...counts.map((row) => (row[i]?.length ?? 0) + 1)));
  const cells = (texts: readonly string[]) => texts.map((text, i) => text.padStart(widths[i] ?? 0)).join('');
  const ownerWidth = Math.max(5, ...rows.map((row) => columns(visible(row.owner))));
  const longest = rows.length === 0 ? 12 : Math.max(10, ...rows.map((row) => columns(visible(row.name))));
  // The counts matter more than the end of a name.
  const counted =
    ownerWidth + 2 + widths.reduce((a, b) => a + b, 0) + Math.max(7, ...rows.map((row) => range(row).length));
  const dated = width === undefined || width >= counted + 13 + Math.min(longest, 10);
  const others = counted + (dated ? 13 : 0);
  const nameWidth = width === undefined ? longest : Math.max(10, Math.min(longest, width - others));
  const head = `${'OWNER'.padEnd(ownerWidth)} ${'BATCH_NAME'.padEnd(nameWidth)}${dated ? '    SUBMITTED' : ''}`;
  return [
    cut(`${head}${cells(heads)} JOB_IDS`, width),
    ...rows.map((row, i) => {
      const names = `${padEnd(visible(row.owner), ownerWidth)} ${padEnd(shortened(visible(row.name), nameWidth), nameWidth)}`;
      const date = dated ? `  ${shortDate(row.submitted)}` : '';
      return cut(`${names}${date}${cells(counts[i] ?? [])} ${range(row)}`, width);
    }),
  ];
}

/** `39.0`, `820.0-999`, or `39.0 ... 42.0`. */
function range({ first, last }: Batch): string {
  const start = `${first.cluster}.${first.proc}`;
  if (first.cluster !== last.cluster) return `${start} ... ${last.cluster}.${last.proc}`;
  return first.proc === last.proc ? start : `${start}-${last.proc}`;
}
