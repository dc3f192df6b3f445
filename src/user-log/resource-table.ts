import type { Properties, ResourceRow, Resources } from './event.ts';
import { oneLine } from './template.ts';

/** A part of an event that takes any number of lines. */
export interface Block {
  readonly field: string;
  print(value: unknown): readonly string[];
  /** Parses its lines from `lines[at]` on; `next` is the first line after them. `undefined` if it is absent. */
  parse(lines: readonly string[], at: number): { readonly value: unknown; readonly next: number } | undefined;
}

const UNITS: Readonly<Record<string, string>> = { Disk: 'KB', Memory: 'MB', TimeExecute: 's', TimeSlotBusy: 's' };
const TITLE = '\tPartitionable Resources :';

/** The table "Partitionable Resources", with columns as wide as HTCondor's. */
export const RESOURCES: Block = {
  field: 'resources',
  print(value) {
    const rows = (value as Resources | undefined) ?? [];
    if (rows.length === 0) return [];
    const places = Math.max(...rows.map((row) => decimals(row.usage)));
    const cells = rows.map((row) => [aligned(row.usage, places), number(row.request), number(row.allocated)] as const);
    const width = (column: 0 | 1 | 2, least: number) => Math.max(least, ...cells.map((cell) => cell[column].length));
    const [usage, request, allocated] = [width(0, 8), width(1, 8), width(2, 9)];
    const line = (head: string, cell: readonly [string, string, string]) =>
      `${head} ${cell[0].padStart(usage)} ${cell[1].padStart(request)} ${cell[2].padStart(allocated)} `;
    const given = rows.some((row) => row.allocated !== undefined);
    return [
      line(TITLE, ['Usage', 'Request', given ? 'Allocated' : '']),
      ...rows.map((row, i) => line(`\t   ${label(row.name).padEnd(20)} :`, cells[i] ?? ['', '', ''])),
    ];
  },
  parse(lines, at) {
    const title = lines[at];
    if (!title?.startsWith(TITLE)) return undefined;
    const ends = ['Usage', 'Request', 'Allocated'].map((word) => title.indexOf(word) + word.length);
    const [usageEnd = 0, requestEnd = 0] = ends;
    const rows: ResourceRow[] = [];
    let next = at + 1;
    for (; next < lines.length; next++) {
      const row = /^\t {3}(\w+)(?: \(\w+\))? *:(.*)$/.exec(lines[next] ?? '');
      if (!row?.[1]) break;
      const line = lines[next] ?? '';
      const cell = (from: number, to: number) => {
        const text = line.slice(from, to).trim();
        return text === '' ? undefined : Number(text);
      };
      const usage = cell(TITLE.length, usageEnd);
      const request = cell(usageEnd, requestEnd);
      const allocated = cell(requestEnd, line.length);
      rows.push({
        name: row[1],
        ...(usage === undefined ? {} : { usage }),
        ...(request === undefined ? {} : { request }),
        ...(allocated === undefined ? {} : { allocated }),
      });
    }
    return { value: rows, next };
  },
};

function label(name: string): string {
  const unit = UNITS[name];
  return unit === undefined ? name : `${name} (${unit})`;
}

function number(value: number | undefined): string {
  if (value === undefined) return '';
  return Number.isInteger(value) ? String(value) : value.toFixed(2);
}

function decimals(value: number | undefined): number {
  return value === undefined || Number.isInteger(value) ? 0 : 3;
}

/** Aligns integers with the digits before the decimal point. */
function aligned(value: number | undefined, places: number): string {
  const text = number(value);
  return text === '' || text.includes('.') ? text : text + ' '.repeat(places);
}

/** `Name = expression` lines, each indented by `indent`. */
export function properties(field: string, indent: string): Block {
  return {
    field,
    print: (value) =>
      ((value as Properties | undefined) ?? []).map(([name, text]) => `${indent}${name} = ${oneLine(text)}`),
    parse(lines, at) {
      const found: [string, string][] = [];
      let next = at;
      for (; next < lines.length; next++) {
        const line = lines[next] ?? '';
        const pair = line.startsWith(indent) ? /^(\w+) = (.*)$/u.exec(line.slice(indent.length)) : null;
        if (pair?.[1] === undefined) break;
        found.push([pair[1], pair[2] ?? '']);
      }
      return found.length === 0 ? undefined : { value: found, next };
    },
  };
}
