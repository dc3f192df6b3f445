import type { AdText } from '../../index.ts';
import { isFormat, printf } from '../../util/printf.ts';
import type { Evaluate } from '../show/autoformat.ts';
import { columns as widthOf, cut, visible } from '../show/width.ts';
import type { Column, PrintFormat } from './parse.ts';
import { printAs } from './print-as.ts';

/** The ads in this format, after its headings. `now`: Unix seconds. */
export function renderPrintFormat(
  ads: readonly AdText[],
  format: PrintFormat,
  evaluate: Evaluate,
  now: number,
): string[] {
  const { columns, label } = format;
  const chosen = ordered(ads.filter(wanted(format, evaluate)), format, evaluate);
  const rows = chosen.map((ad) => columns.map((column) => visible(cellOf(column, ad, evaluate, now))));
  if (label !== undefined) {
    return rows.map((row) => row.map((cell, i) => `${columns[i]?.heading ?? ''}${label}${cell}`).join(' '));
  }
  const heads = columns.map(({ heading }) => visible(heading));
  const widths = columns.map(({ width }, i) => {
    if (width !== undefined) return width;
    const cells = rows.map((row) => row[i] ?? '');
    return Math.max(...[...(format.heads ? [heads[i] ?? ''] : []), ...cells].map(widthOf), 0);
  });
  const line = (cells: readonly string[]): string =>
    columns
      .map((column, i) => `${i === 0 || column.noPrefix ? '' : ' '}${padded(cells[i] ?? '', column, widths[i] ?? 0)}`)
      .join('')
      .trimEnd();
  return [...(format.heads ? [heads] : []), ...rows].map(line);
}

function wanted({ where }: PrintFormat, evaluate: Evaluate): (ad: AdText) => boolean {
  return (ad) => where.every((expression) => /^(true|-?0*[1-9][\d.]*)$/.test(evaluate(expression, ad, true)));
}

function ordered(ads: readonly AdText[], { groupBy }: PrintFormat, evaluate: Evaluate): readonly AdText[] {
  if (groupBy.length === 0) return ads;
  const keyed = ads.map((ad) => ({ ad, keys: groupBy.map(({ expression }) => evaluate(expression, ad, false)) }));
  keyed.sort((a, b) => {
    for (const [i, { descending }] of groupBy.entries()) {
      const order = compare(a.keys[i] ?? '', b.keys[i] ?? '');
      if (order !== 0) return descending ? -order : order;
    }
    return 0;
  });
  return keyed.map(({ ad }) => ad);
}

const NUMBER = /^-?\d+(\.\d+)?(E[+-]?\d+)?$/i;

function compare(a: string, b: string): number {
  if (NUMBER.test(a) && NUMBER.test(b)) return Number(a) - Number(b);
  return a < b ? -1 : a > b ? 1 : 0;
}

function cellOf(column: Column, ad: AdText, evaluate: Evaluate, now: number): string {
  const { or } = column;
  const value = evaluate(column.expression, ad, false);
  const shown = column.printAs === undefined ? value : printAs(column.printAs, value, ad, now);
  if (shown === undefined || (or !== undefined && (shown === 'undefined' || shown === 'error'))) {
    if (or === undefined) return 'undefined';
    // A doubled character fills the column.
    return or.length > 1 && column.width !== undefined ? or.charAt(0).repeat(column.width) : or;
  }
  return column.printf === undefined ? shown : formatted(column.printf, shown);
}

/** Shows a value that does not fit its conversion unchanged. */
function formatted(format: string, value: string): string {
  const number = NUMBER.test(value);
  if (number && isFormat(format, 'int')) return printf(format, BigInt(Math.trunc(Number(value))));
  if (number && isFormat(format, 'real')) return printf(format, Number(value));
  const asText = format.replace(
    /%([-]?)(\d*)(?:\.\d+)?[hlLqjzt]*[a-zA-Z]/,
    (_, flag: string, width: string) => `%${flag}${width}s`,
  );
  return printf(isFormat(format, 'string') ? format : asText, value);
}

function padded(cell: string, { left, truncate, width }: Column, available: number): string {
  const text = truncate && width !== undefined ? cut(cell, width) : cell;
  const missing = ' '.repeat(Math.max(0, available - widthOf(text)));
  return left ? text + missing : missing + text;
}
