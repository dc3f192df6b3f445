import { fromBytes, toBytes } from '../bytes.ts';
import { RegexStopped } from '../regex/match.ts';
import { Regex } from '../regex/regex.ts';
import type { Flags } from '../regex/syntax.ts';
import { type EvalState, MAX_STRING } from '../state.ts';
import { ERROR, ListValue, type Value } from '../values.ts';
import { caught, type FunctionDefinition, type FunctionTable, item } from './definition.ts';
import { tokens } from './string-lists.ts';

/** The most steps one match may take; PCRE's own limit is 10,000,000 calls of its matcher. */
const MATCH_STEPS = 2_000_000;

/** Letters other than i, m, s, x are ignored. */
export function flagsOf(options: string): Flags {
  return {
    caseless: options.includes('i'),
    multiline: options.includes('m'),
    dotAll: options.includes('s'),
    extended: options.includes('x'),
  };
}

/** Matches within the remaining budget of the evaluation; `null` if the pattern is invalid or the match was stopped. */
export function search<T>(state: EvalState, pattern: string, flags: Flags, use: (search: Search) => T): T | null {
  const regex = Regex.compile(toBytes(pattern), flags);
  if (regex === undefined) return null;
  const budget = { steps: Math.min(MATCH_STEPS, state.steps) };
  const before = budget.steps;
  try {
    return use((subject, from, options) => regex.match(subject, from, budget, options));
  } catch (thrown) {
    if (thrown instanceof RegexStopped) return null;
    throw thrown;
  } finally {
    state.steps -= before - Math.max(budget.steps, 0);
  }
}

type Search = (
  subject: string,
  from: number,
  options?: { anchored?: boolean; notEmpty?: boolean | 'at-start' },
) => Int32Array | undefined;

/** The result if not all arguments are strings: error first, then undefined, then a wrong type; `null` if all are. */
function notStrings(values: readonly Value[], options: Value | null): Value | null {
  const all = options === null ? values : [...values, options];
  if (all.includes(ERROR)) return ERROR;
  if (all.includes(undefined)) return undefined;
  return all.every((value) => typeof value === 'string') ? null : ERROR;
}

function withOptions(
  least: number,
  compute: (state: EvalState, values: readonly Value[], options: Value | null, above: number) => Value,
): FunctionDefinition {
  return {
    least,
    most: least + 1,
    make: ({ args, above }) => {
      return (state) => {
        const values = args.map((arg) => arg(state));
        const options = values.length > least ? values[least] : null;
        return compute(state, values.slice(0, least), options, above);
      };
    },
  };
}

function regexp(state: EvalState, values: readonly Value[], options: Value | null): Value {
  const wrong = notStrings(values, options);
  if (wrong !== null) return wrong;
  const [pattern, subject] = values as string[];
  return (
    search(state, pattern ?? '', flagsOf((options ?? '') as string), (find) => {
      return find(toBytes(subject ?? ''), 0) !== undefined;
    }) ?? ERROR
  );
}

function regexpMember(state: EvalState, values: readonly Value[], options: Value | null, above: number): Value {
  const [pattern, list] = values;
  if ([pattern, list, options].includes(ERROR)) return ERROR;
  // An undefined pattern or list takes precedence over a wrong type of the others.
  if (list === undefined || pattern === undefined || options === undefined) return undefined;
  if (notStrings([pattern], options) !== null || !(list instanceof ListValue)) return ERROR;
  let someUndefined = false;
  for (let at = 0; at < list.items.length; at += 1) {
    const subject = caught(state, () => item(state, list, at, above));
    if (subject === undefined) someUndefined = true;
    else if (typeof subject !== 'string') return ERROR;
    else if (regexp(state, [pattern, subject], options) === true) return true;
  }
  return someUndefined ? undefined : false;
}

/** Expands `\0` to `\9` in a replacement; `undefined` if there is no such group. */
function replacement(template: string, subject: string, match: Int32Array): string | undefined {
  let last = match.length / 2 - 1;
  while (last > 0 && (match[2 * last] ?? -1) < 0) last -= 1;
  let missing = false;
  const text = template.replace(/\\([0-9])/g, (_whole, digit: string) => {
    const group = Number(digit);
    if (group > last) missing = true;
    const start = match[2 * group] ?? -1;
    return start < 0 ? '' : subject.slice(start, match[2 * group + 1]);
  });
  return missing ? undefined : text;
}

/**
 * After an empty match, the library advances by one byte and fails past the end, so `replaceall("x*",…)` is an error.
 */
function substitute(find: Search, subject: string, template: string, whole: boolean, all: boolean): Value {
  let out = '';
  let at = 0;
  let empty = false;
  for (;;) {
    if (at > subject.length) return ERROR;
    const match = find(subject, at, empty ? { anchored: true, notEmpty: 'at-start' } : {});
    if (match === undefined) {
      if (!empty) break;
      out += subject.charAt(at);
      at += 1;
      empty = false;
      continue;
    }
    const [start = 0, end = 0] = match;
    const made = replacement(template, subject, match);
    if (made === undefined) return ERROR;
    out += (whole ? subject.slice(at, start) : '') + made;
    if (out.length > MAX_STRING) return ERROR;
    at = end;
    // After an empty match, the library only accepts non-empty ones until none is left.
    empty ||= start === end;
    if (!all) break;
  }
  return fromBytes(whole ? out + subject.slice(at) : out);
}

function substitution(extra: string) {
  return withOptions(3, (state, values, options) => {
    const wrong = notStrings(values, options);
    if (wrong !== null) return wrong;
    const [pattern, subject, template] = values as string[];
    const letters = ((options ?? '') as string) + extra;
    return (
      search(state, pattern ?? '', flagsOf(letters), (find) => {
        const bytes = toBytes(subject ?? '');
        return {
          value: substitute(find, bytes, toBytes(template ?? ''), letters.includes('f'), letters.includes('g')),
        };
      })?.value ?? ERROR
    );
  });
}

/** stringList_regexpMember(pattern, list [, delimiters [, options]]): all arguments must be strings. */
function listMember(): FunctionDefinition {
  return {
    least: 2,
    most: 4,
    make: ({ args }) => {
      return (state) => {
        const values = args.map((arg) => arg(state));
        if (!values.every((value) => typeof value === 'string')) return ERROR;
        const [pattern = '', list = '', delimiters = ', ', options = ''] = values;
        const items = tokens(list, delimiters);
        const found = search(state, pattern, flagsOf(options.toLowerCase()), (find) => {
          return items.map((each) => find(toBytes(each), 0) !== undefined).includes(true);
        });
        if (found === null) return ERROR;
        return items.length === 0 ? undefined : found;
      };
    },
  };
}

export const REGEXES: FunctionTable = [
  ['regexp', withOptions(2, regexp)],
  ['regexpMember', withOptions(2, regexpMember)],
  ['regexps', substitution('')],
  ['replace', substitution('f')],
  ['replaceall', substitution('fg')],
  ['stringList_regexpMember', listMember()],
];
