import { compareText, compareTextFolded, fromBytes, rejoined, toBytes } from '../bytes.ts';
import { toInt32 } from '../int64.ts';
import { type Code, FAILED, MAX_STRING } from '../state.ts';
import { ERROR, isInt, ListValue, type Value } from '../values.ts';
import { toText } from './convert.ts';
import { type CallSite, type FunctionTable, item, pure } from './definition.ts';
import { naturalCompare } from './natural.ts';

function strcat({ args, above }: CallSite): Code {
  return (state) => {
    let text = '';
    for (const arg of args) {
      if (state.depth - above < 0) throw FAILED;
      const part = toText(arg(state));
      if (typeof part !== 'string') return part;
      text += part;
      if (text.length > MAX_STRING) return ERROR;
    }
    return rejoined(text);
  };
}

/** join(sep, item…), join(sep, list), join(list). Undefined items are skipped. */
function join({ args, above }: CallSite): Code {
  return (state) => {
    const last = args.length > 0 && args.length <= 2 ? args[args.length - 1]?.(state) : undefined;
    const list = last instanceof ListValue ? last : undefined;
    if (list === undefined) return joinItems(args.map((arg) => () => arg(state)));
    const first = args.length === 1 ? () => '' : () => args[0]?.(state);
    return joinItems([first, ...list.items.map((_item, at) => () => item(state, list, at, above))]);
  };
}

/** The first item is the separator. None is inserted while the text so far is empty. */
function joinItems(items: readonly (() => Value)[]): Value {
  let text = '';
  let separator = '';
  let someUndefined = false;
  let someDefined = false;
  for (const [at, read] of items.entries()) {
    const part = toText(read());
    if (part === ERROR) return ERROR;
    if (typeof part !== 'string') {
      someUndefined = true;
    } else if (at === 0) {
      separator = part;
    } else {
      text += text === '' ? part : separator + part;
      someDefined = true;
      if (text.length > MAX_STRING) return ERROR;
    }
  }
  return someUndefined && !someDefined ? undefined : rejoined(text);
}

function changeCase(change: (text: string) => string) {
  return pure(1, 1, (value) => {
    const text = toText(value);
    return typeof text === 'string' ? change(text) : text;
  });
}

/** Offsets and lengths are in bytes; negative ones count from the end; a length of 0 gives an empty string. */
function substring(text: Value, from: Value, count: Value): Value {
  if (typeof text !== 'string' || !isInt(from) || !isInt(count)) return ERROR;
  const bytes = toBytes(text);
  const wanted = toInt32(from);
  const start = Math.min(wanted < 0 ? Math.max(bytes.length + wanted, 0) : wanted, bytes.length);
  const available = bytes.length - start;
  const cut = toInt32(count);
  const length = cut <= 0 ? Math.max(available + cut, 0) : Math.min(cut, available);
  return fromBytes(bytes.slice(start, start + (cut === 0 ? 0 : length)));
}

function substrCode({ args: [text, offset, length] }: CallSite): Code {
  if (text === undefined || offset === undefined) return () => ERROR;
  return (state) => {
    const subject = text(state);
    const from = offset(state);
    const count = length === undefined ? 2 ** 31 - 1 : length(state);
    if (subject === undefined || from === undefined || count === undefined) return undefined;
    return substring(subject, from, count);
  };
}

function comparison(order: (a: string, b: string) => Value) {
  return pure(2, 2, (a, b) => {
    if (a === undefined || b === undefined) return undefined;
    const left = toText(a);
    const right = toText(b);
    return typeof left === 'string' && typeof right === 'string' ? order(left, right) : ERROR;
  });
}

function inRange(version: Value, least: Value, most: Value): Value {
  if (least === undefined || most === undefined) return undefined;
  const [text, low, high] = [toText(version), toText(least), toText(most)];
  if (typeof text !== 'string' || typeof low !== 'string' || typeof high !== 'string') return ERROR;
  return naturalCompare(low, text) <= 0 && naturalCompare(text, high) <= 0;
}

export const STRINGS: FunctionTable = [
  ['strcat', { least: 0, most: Number.POSITIVE_INFINITY, level: 1, pure: true, make: strcat }],
  ['join', { least: 0, most: Number.POSITIVE_INFINITY, level: 1, make: join }],
  ['toUpper', changeCase((text) => text.replace(/[a-z]+/g, (lower) => lower.toUpperCase()))],
  ['toLower', changeCase((text) => text.replace(/[A-Z]+/g, (upper) => upper.toLowerCase()))],
  ['substr', { least: 2, most: 3, pure: true, make: substrCode }],
  ['strcmp', comparison((a, b) => Math.sign(compareText(a, b)))],
  ['stricmp', comparison((a, b) => Math.sign(compareTextFolded(a, b)))],
  ['versioncmp', comparison(naturalCompare)],
  ['versionLE', comparison((a, b) => naturalCompare(a, b) <= 0)],
  ['versionLT', comparison((a, b) => naturalCompare(a, b) < 0)],
  ['versionGE', comparison((a, b) => naturalCompare(a, b) >= 0)],
  ['versionGT', comparison((a, b) => naturalCompare(a, b) > 0)],
  ['versionEQ', comparison((a, b) => naturalCompare(a, b) === 0)],
  ['version_in_range', pure(3, 3, inRange)],
];
