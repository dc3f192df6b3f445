import { type ArrayIndices, BadValue, type IndexRange } from './model.ts';

const MOST_TASKS = 10_000_000;

export function count(text: string, what = 'a number'): number {
  if (!/^\d{1,9}$/.test(text)) throw new BadValue(`'${text}' is not ${what}`);
  return Number(text);
}

/** A count of at least one. */
export function atLeastOne(text: string): number {
  const value = count(text);
  if (value === 0) throw new BadValue('it must be at least 1');
  return value;
}

/** Slurm's, which counts in whole minutes and rounds up: minutes, `m:s`, `h:m:s`, `d-h`, `d-h:m`, `d-h:m:s`; `undefined`: no limit. */
export function slurmSeconds(text: string): number | undefined {
  if (/^(0|UNLIMITED|INFINITE|-1)$/i.test(text)) return undefined;
  const [, days, rest = ''] = /^(?:(\d+)-)?(\d+(?::\d+){0,2})$/.exec(text) ?? [];
  if (rest === '') throw new BadValue(`'${text}' is not a time`);
  const parts = rest.split(':').map(Number);
  const [a = 0, b = 0, c = 0] = parts;
  if (days !== undefined) return wholeMinutes(Number(days) * 86_400 + a * 3600 + b * 60 + c);
  if (parts.length === 1) return a * 60;
  return wholeMinutes(parts.length === 2 ? a * 60 + b : a * 3600 + b * 60 + c);
}

function wholeMinutes(seconds: number): number {
  return Math.ceil(seconds / 60) * 60;
}

/** PBS's and Grid Engine's: seconds, `m:s`, `h:m:s`, `d:h:m:s`. Empty parts are 0. */
export function clockSeconds(text: string): number | undefined {
  if (/^(INFINITY|UNLIMITED)$/i.test(text)) return undefined;
  if (!/^\d*(:\d*){0,3}(\.\d+)?$/.test(text) || !/\d/.test(text)) throw new BadValue(`'${text}' is not a time`);
  const parts = text
    .replace(/\.\d+$/, '')
    .split(':')
    .map(Number)
    .reverse();
  const [s = 0, m = 0, h = 0, d = 0] = parts;
  return d * 86_400 + h * 3600 + m * 60 + s;
}

/** LSF's: `[hours:]minutes`, and after a slash a host's name, which is left out. */
export function lsfSeconds(text: string): number {
  const [, hours, minutes] = /^(?:(\d+):)?(\d+)(?:\/.*)?$/.exec(text) ?? [];
  if (minutes === undefined) throw new BadValue(`'${text}' is not a time`);
  return Number(hours ?? 0) * 3600 + Number(minutes) * 60;
}

const BINARY: Readonly<Record<string, number>> = { '': 0, k: 1, m: 2, g: 3, t: 4, p: 5 };

/** A size with a binary suffix (`4G`, `4GB`, `4gb`); `unit`: the suffix of a bare number. */
export function bytes(text: string, unit: '' | 'k' | 'm'): number {
  const [, number, suffix] = /^(\d+(?:\.\d+)?)([kmgtp]?)i?(?:b|w)?$/i.exec(text) ?? [];
  if (number === undefined) throw new BadValue(`'${text}' is not a size`);
  const bare = suffix === '' && !/b$/i.test(text) ? unit : (suffix ?? '').toLowerCase();
  const words = /w$/i.test(text) ? 8 : 1;
  return Math.ceil(Number(number) * words * 1024 ** (BINARY[bare] ?? 0));
}

/** Grid Engine's: capital suffixes are powers of 1024, small ones of 1000; a bare number is bytes. */
export function sgeBytes(text: string): number {
  const [, number, suffix = ''] = /^(\d+(?:\.\d+)?)([kmgtKMGT]?)$/.exec(text) ?? [];
  if (number === undefined) throw new BadValue(`'${text}' is not a size`);
  const base = suffix === suffix.toLowerCase() ? 1000 : 1024;
  return Math.ceil(Number(number) * base ** (BINARY[suffix.toLowerCase()] ?? 0));
}

/** `1-10`, `1-10:2`, `1,5,9-12`, each with `%4` for the most at once. */
export function indices(text: string): ArrayIndices {
  const [, list = '', limit] = /^([^%]*)(?:%(\d+))?$/.exec(text) ?? [];
  const ranges = list.split(',').map(range);
  const total = ranges.reduce((sum, one) => sum + rangeCount(one), 0);
  if (total > MOST_TASKS) throw new BadValue(`${total} tasks are more than ${MOST_TASKS}`);
  return { ranges: once(ranges), ...(limit === undefined ? {} : { limit: atLeastOne(limit) }) };
}

/** Systems run an index that is written twice once. */
function once(ranges: readonly IndexRange[]): readonly IndexRange[] {
  if (ranges.length === 1) return ranges;
  const items = ranges.flatMap(itemsOf);
  const different = new Set(items);
  if (different.size === items.length) return ranges;
  return [...different].toSorted((a, b) => a - b).map((index) => ({ from: index, to: index, step: 1 }));
}

function range(text: string): IndexRange {
  const [, from, to, step] = /^(\d{1,8})(?:-(\d{1,8})(?::(\d{1,8}))?)?$/.exec(text.trim()) ?? [];
  if (from === undefined) throw new BadValue(`'${text}' is not a range of indices`);
  const one = { from: Number(from), to: Number(to ?? from), step: Number(step ?? 1) };
  if (one.to < one.from) throw new BadValue(`the range '${text}' runs backwards`);
  if (one.step < 1) throw new BadValue('the step must be at least 1');
  return one;
}

export function rangeCount({ from, to, step }: IndexRange): number {
  return Math.floor((to - from) / step) + 1;
}

export function itemsOf(one: IndexRange): number[] {
  return Array.from({ length: rangeCount(one) }, (_, i) => one.from + i * one.step);
}

export function allIndices({ ranges }: ArrayIndices): number[] {
  return ranges.flatMap(itemsOf);
}

/** Splits `A=1,B='x,y',C` at commas outside quotes and backslashes; the quotes are taken off. */
export function commaList(text: string): string[] {
  const out: string[] = [];
  let item = '';
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i] ?? '';
    if (c === '\\' && quote !== "'" && i + 1 < text.length) item += text[++i] ?? '';
    else if (quote !== '') {
      if (c === quote) quote = '';
      else item += c;
    } else if (c === '"' || c === "'") quote = c;
    else if (c === ',') {
      out.push(item);
      item = '';
    } else item += c;
  }
  return [...out, item].filter((one) => one !== '');
}

export const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
