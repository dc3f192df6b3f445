import { booleanOf, integerOf } from './calculate.ts';
import { parseSlice } from './slice.ts';
import type { Slice } from './slice.ts';
import { ANY_SEPARATOR, CSV_DEFAULTS, TABLE_DEFAULTS } from './rows.ts';
import type { TableOptions } from './rows.ts';
import { isSpace, tokens, trim, trimEnd, trimStart } from './text.ts';

/** What follows the word `queue`, with macros expanded. */
export interface QueueArgs {
  /** Jobs per item. */
  readonly count: number;
  readonly mode: 'none' | 'in' | 'from' | 'matching';
  /** What `matching` may match; undefined: as submit_match_directories says. */
  readonly matching: 'files' | 'dirs' | 'any' | undefined;
  readonly vars: readonly string[];
  readonly slice: Slice | undefined;
  readonly table: TableOptions | undefined;
  readonly items: readonly string[];
  /** Where more items come from: the lines up to `)`, this file, this command (with a `|`), or `-` for stdin. */
  readonly more: { readonly kind: 'lines' } | { readonly kind: 'source'; readonly name: string } | undefined;
}

export class QueueError extends Error {
  override readonly name = 'QueueError';
}

/** The words that begin at `from`, up to a blank or `(`; text after the last such delimiter does not count as one. */
function wordAt(text: string, from: number): { readonly start: number; readonly end: number } | undefined {
  let start = from;
  while (start < text.length && isSpace(text.charAt(start))) start++;
  let end = start;
  while (end < text.length && !isSpace(text.charAt(end)) && text[end] !== '(') end++;
  return end < text.length ? { start, end } : undefined;
}

function findKeyword(
  text: string,
): { readonly mode: 'in' | 'from' | 'matching'; start: number; end: number } | undefined {
  for (let at = 0; ; ) {
    const word = wordAt(text, at);
    if (!word) return undefined;
    const keyword = text.slice(word.start, word.end).toLowerCase();
    if (keyword === 'in' || keyword === 'from' || keyword === 'matching') return { mode: keyword, ...word };
    at = word.end + 1;
  }
}

/** Where the loop variables at the end of `text` begin. In a name, digits only follow a letter. */
function varsAt(text: string): number {
  let vars = text.length;
  let at = text.length;
  while (at > 0) {
    let char = text.charAt(at - 1);
    if (/\d/.test(char)) {
      while (at > 0 && /\d/.test(text.charAt(at - 1))) at--;
      char = text.charAt(at - 1);
      if (!/[A-Za-z]/.test(char)) break;
    }
    if (!/[A-Za-z,_.\s]/.test(char)) break;
    vars = --at;
  }
  return vars;
}

function tableOptions(text: string): TableOptions {
  let options = TABLE_DEFAULTS;
  for (const part of tokens(text, ',')) {
    if (part.toLowerCase() === 'csv') options = CSV_DEFAULTS;
    const [, key = '', value = ''] = /^(\w+)\s*=\s*(.*)$/s.exec(part) ?? [];
    const number = integerOf(value);
    if (key.toLowerCase() === 'header' && value.toLowerCase() === 'none') options = { ...options, header: -1 };
    else if (key.toLowerCase() === 'header' && number !== undefined) options = { ...options, header: Number(number) };
    else if (key.toLowerCase() === 'skip' && number !== undefined) options = { ...options, skip: Number(number) };
    else if (key.toLowerCase() === 'trim') options = { ...options, trim: booleanOf(value) ?? options.trim };
    else if (key.toLowerCase() === 'comma_sep')
      options = { ...options, separator: booleanOf(value) === false ? ANY_SEPARATOR : ',' };
    else if (key.toLowerCase() === 'sep' && value !== '') options = { ...options, separator: value.charAt(0) };
  }
  return options;
}

interface Qualifiers {
  matching?: 'files' | 'dirs' | 'any';
  slice?: Slice;
  table?: TableOptions;
}

/** Takes files, dirs, any, table(…) and [slice] off the front; the rest is the list. */
function takeQualifiers(text: string, mode: string): { readonly found: Qualifiers; readonly list: string } {
  const found: Qualifiers = {};
  let rest = trimStart(text);
  for (;;) {
    const word = wordAt(rest, 0);
    const name = word ? rest.slice(0, word.end).toLowerCase() : '';
    if (word && rest.startsWith('[')) {
      const parsed = parseSlice(rest);
      if (!parsed) throw new QueueError('Invalid [::] statement');
      if (parsed.slice.step !== undefined && parsed.slice.step < 1) {
        throw new QueueError('Invalid [::] statement: the step must be 1 or more');
      }
      found.slice = parsed.slice;
      rest = trimStart(parsed.rest);
    } else if (name === 'files' || name === 'dirs' || name === 'any') {
      if (mode !== 'matching' || found.matching !== undefined) throw new QueueError('Queue keyword conflict');
      found.matching = name;
      rest = trimStart(rest.slice(name.length));
    } else if (name === 'table') {
      if (mode !== 'from' || found.table !== undefined) throw new QueueError('Queue keyword conflict');
      const options = /^\(([^)]*)\)/.exec(trimStart(rest.slice(name.length)));
      if (rest[word?.end ?? 0] === '(' && !options) throw new QueueError('Invalid TABLE options');
      const given = rest[word?.end ?? 0] === '(' ? options : null;
      found.table = tableOptions(given?.[1] ?? '');
      rest = trimStart(rest.slice(name.length + (given?.[0].length ?? 0)));
    } else return { found, list: rest };
  }
}

function parseList(list: string, mode: string): Pick<QueueArgs, 'items' | 'more'> {
  const oneLine = list.startsWith('(') && list.endsWith(')') && list.length > 1;
  const inner = oneLine ? list.slice(1, -1) : list;
  const split = (text: string): string[] => (mode === 'from' ? (text === '' ? [] : [text]) : tokens(text));
  if (inner.startsWith('(')) return { items: split(trimStart(inner.slice(1))), more: { kind: 'lines' } };
  if (mode !== 'from') return { items: tokens(inner), more: undefined };
  if (oneLine) return { items: [trimStart(inner)], more: undefined };
  const name = trim(inner);
  return { items: [], more: name === '' ? undefined : { kind: 'source', name } };
}

function parseCount(text: string): number {
  if (text === '') return 1;
  const count = integerOf(text);
  if (count === undefined) throw new QueueError('Invalid Queue count expression');
  if (count < 0n || count >= 2_147_483_647n) throw new QueueError('Queue count out of range');
  if (count === 0n) throw new QueueError('Queue count out of range: queue 0 queues no job');
  return Number(count);
}

/**
 * `[count] [vars in|from|matching [files|dirs|any] [table(…)] [slice] items]` (manual, "Submitting many similar jobs
 * with one queue command"). Throws a QueueError.
 */
export function parseQueueArgs(expanded: string): QueueArgs {
  // A blank after the keyword stays: a list whose macro is empty has no items.
  const text = trimStart(expanded);
  const keyword = findKeyword(text);
  if (!keyword) {
    const count = parseCount(trimEnd(text));
    return {
      count,
      mode: 'none',
      matching: undefined,
      vars: [],
      slice: undefined,
      table: undefined,
      items: [],
      more: undefined,
    };
  }
  const before = trimEnd(text.slice(0, keyword.start));
  const vars = varsAt(before);
  const { found, list } = takeQualifiers(trimEnd(text.slice(keyword.end)), keyword.mode);
  return {
    count: parseCount(trim(before.slice(0, vars))),
    mode: keyword.mode,
    matching: found.matching,
    vars: tokens(before.slice(vars)),
    slice: found.slice,
    table: found.table,
    ...parseList(list, keyword.mode),
  };
}

/** What follows `queue` (or `iterate`) in a line; `undefined` if the line is not a queue statement. */
export function queueArguments(line: string): string | undefined {
  const found = /^queue(?:\s+(.*))?$/is.exec(line) ?? /^iter(?:a(?:te?)?)?(?:[\s,]+(.*))?$/is.exec(trimStart(line));
  return found ? (found[1] ?? '') : undefined;
}
