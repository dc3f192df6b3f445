import * as z from 'zod';
import type { Read } from '../util/schema.ts';

/** How `queue … from table(…)` splits a row into columns; without `table`, HTCondor's old rules apply. */
export const TABLE_OPTIONS = z.strictObject({
  /** The row with the column names, from 0; -1 for none. */
  header: z.int(),
  skip: z.int(),
  trim: z.boolean(),
  separator: z.string(),
});
export type TableOptions = Read<typeof TABLE_OPTIONS>;

export const TABLE_DEFAULTS: TableOptions = { header: 0, skip: 0, trim: true, separator: ',' };
export const CSV_DEFAULTS: TableOptions = { ...TABLE_DEFAULTS, header: -1 };

/** By default, commas and blanks separate columns. */
export const ANY_SEPARATOR = ', \t';

/** The unit separator: if a row contains it, nothing else separates. */
const UNIT = '\x1f';

function trimmed(text: string): string {
  return text.replace(/^[ \t]+/, '').replace(/[ \t]+$/, '');
}

function firstOf(text: string, separators: string): number {
  for (let at = 0; at < text.length; at++) if (separators.includes(text.charAt(at))) return at;
  return -1;
}

/**
 * The columns of a row: none if it is empty (its variables keep the values of the row before), otherwise exactly
 * `columns`, the last of which has all the rest. Separators are commas and blanks; quotes have no meaning.
 */
export function splitRow(row: string, columns: number, table?: TableOptions): string[] {
  const unit = table === undefined && row.includes(UNIT);
  const separators = unit ? UNIT : (table?.separator ?? ANY_SEPARATOR);
  const trims = table?.trim ?? true;
  const whole = trims ? trimmed(row.replace(/\r?\n?$/, '')) : row.replace(/\r?\n?$/, '');
  if (whole === '') return [];
  const values: string[] = [];
  let rest = whole;
  while (values.length < columns - 1) {
    const at = firstOf(rest, separators);
    if (at < 0) break;
    const value = rest.slice(0, at);
    values.push(trims ? trimmed(value) : value);
    rest = trims ? rest.slice(at + 1).replace(/^[ \t]+/, '') : rest.slice(at + 1);
  }
  values.push(rest);
  while (values.length < columns && Number.isFinite(columns)) values.push('');
  return values;
}
