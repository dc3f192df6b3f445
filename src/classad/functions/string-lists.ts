import { fold, isSpace } from '../bytes.ts';
import { truncToInt64 } from '../int64.ts';
import { readDouble } from '../number-text.ts';
import { ERROR, Real, type Value } from '../values.ts';
import { caught, type FunctionDefinition, type FunctionTable } from './definition.ts';

const FLT_MAX = 3.4028234663852886e38;
const FLT_MIN = 1.1754943508222875e-38;

/** The items of a string list: split at any of the delimiters, trimmed, empty ones dropped. */
export function tokens(list: string, delimiters: string): string[] {
  const items: string[] = [];
  let start = 0;
  for (let at = 0; at <= list.length; at += 1) {
    if (at < list.length && !delimiters.includes(list.charAt(at))) continue;
    const text = trim(list.slice(start, at));
    if (text !== '') items.push(text);
    start = at + 1;
  }
  return items;
}

function trim(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(text.charAt(start))) start += 1;
  while (end > start && isSpace(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

/** Sums in floats; the result is an integer if every item looks like one. An empty list gives `empty`. */
function summary(
  step: (item: number, soFar: number) => number,
  start: number,
  empty: Value,
  finish: (total: number, count: number) => number = (total) => total,
): FunctionDefinition {
  return strings12((list, delimiters) => {
    const items = tokens(list, delimiters);
    if (items.length === 0) return empty;
    let total = start;
    for (const item of items) {
      const number = readDouble(item);
      if (number === undefined) return ERROR;
      total = step(number, total);
    }
    const result = finish(total, items.length);
    return items.every((item) => /^[-+0-9]+$/.test(item)) ? truncToInt64(result) : new Real(result);
  });
}

/** Takes (list [, delimiters]), both strings; `undefined` is an error here. */
function strings12(compute: (list: string, delimiters: string) => Value): FunctionDefinition {
  return {
    least: 1,
    most: 2,
    pure: true,
    make: ({ args: [list, delimiters] }) => {
      return (state) => {
        const text = list?.(state);
        const split = delimiters === undefined ? ', ' : delimiters(state);
        return typeof text === 'string' && typeof split === 'string' ? compute(text, split) : ERROR;
      };
    },
  };
}

/** These functions take undefined for an empty string, unless both item and list are undefined. */
function membership(test: (item: string, list: string, delimiters: string) => boolean): FunctionDefinition {
  return {
    least: 2,
    most: 3,
    pure: true,
    make: ({ args: [item, list, delimiters] }) => {
      return (state) => {
        const values = [item?.(state), list?.(state), delimiters?.(state)];
        if (!values.every((value) => value === undefined || typeof value === 'string')) return ERROR;
        const [wanted, text, split = ', \t\r\n'] = values;
        if (wanted === undefined && text === undefined) return undefined;
        return test(wanted ?? '', text ?? '', split);
      };
    },
  };
}

function member(key: (text: string) => string): FunctionDefinition {
  return membership((item, list, delimiters) => {
    const wanted = key(item);
    return tokens(list, delimiters).some((each) => key(each) === wanted);
  });
}

/** The empty string is a subset of everything; a list of delimiters only is a subset of nothing. */
function subset(key: (text: string) => string): FunctionDefinition {
  return membership((items, list, delimiters) => {
    if (items === '') return true;
    const known = new Set(tokens(list, delimiters).map(key));
    const wanted = tokens(items, delimiters);
    return wanted.length > 0 && wanted.every((item) => known.has(key(item)));
  });
}

/** Blanks are kept here, and empty delimiters mean the default ones. */
function intersect(values: readonly Value[]): Value {
  if (values.includes(ERROR)) return ERROR;
  if (values.includes(undefined)) return undefined;
  if (!values.every((value) => typeof value === 'string')) return ERROR;
  const [first = '', second = '', delimiters = ''] = values as string[];
  const split = delimiters === '' ? ' ,' : delimiters;
  const known = new Set(pieces(second, split));
  return pieces(first, split).some((item) => known.has(item));
}

function pieces(list: string, delimiters: string): string[] {
  const items: string[] = [];
  let item = '';
  for (const char of list) {
    if (!delimiters.includes(char)) item += char;
    else {
      if (item !== '') items.push(item);
      item = '';
    }
  }
  return item === '' ? items : [...items, item];
}

const same = (text: string): string => text;
const add = (item: number, soFar: number): number => item + soFar;

export const STRING_LISTS: FunctionTable = [
  ['stringListSize', strings12((list, delimiters) => tokens(list, delimiters).length)],
  ['stringListSum', summary(add, 0, new Real(0))],
  ['stringListAvg', summary(add, 0, new Real(0), (total, count) => total / count)],
  ['stringListMin', summary((item, soFar) => (item < soFar ? item : soFar), FLT_MAX, undefined)],
  // Starts from the smallest positive float, so the maximum of negative numbers is that, or 0.
  ['stringListMax', summary((item, soFar) => (item > soFar ? item : soFar), FLT_MIN, undefined)],
  ['stringListMember', member(same)],
  ['stringListIMember', member(fold)],
  ['stringListSubsetMatch', subset(same)],
  ['stringListISubsetMatch', subset(fold)],
  [
    'stringListsIntersect',
    {
      least: 2,
      most: 3,
      pure: true,
      make:
        ({ args }) =>
        (state) =>
          intersect(args.map((arg) => caught(state, () => arg(state)))),
    },
  ],
];
