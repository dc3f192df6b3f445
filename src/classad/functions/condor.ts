import { isSpace, sameText } from '../bytes.ts';
import { type Expr, literal } from '../expr.ts';
import { toInt32 } from '../int64.ts';
import type { EvalState } from '../state.ts';
import { ERROR, isInt, ListValue, type Value } from '../values.ts';
import { caught, type Each, type FunctionDefinition, type FunctionTable, overLists, pure } from './definition.ts';
import { type EnvironmentMap, joinWords, printV2, readV1, setEntry, splitWords } from './shell-words.ts';
import { tokens } from './string-lists.ts';

function listOf(items: readonly string[]): ListValue {
  return new ListValue(
    items.map((text): Expr => literal(text)),
    undefined,
    true,
  );
}

function splitAt(alone: (text: string) => [string, string]): FunctionDefinition {
  return pure(1, 1, (value) => {
    if (typeof value !== 'string') return ERROR;
    const at = value.indexOf('@');
    return listOf(at < 0 ? alone(value) : [value.slice(0, at), value.slice(at + 1)]);
  });
}

/** split(text [, separators]): repeating a separator other than a blank produces an empty item. */
function split(text: string, separators: string): ListValue {
  const items: string[] = [];
  let start = 0;
  let last = '';
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (!separators.includes(char)) continue;
    if (at > start) items.push(text.slice(start, at));
    else if (last !== '' && char === last) items.push('');
    if (!isSpace(char)) last = char;
    start = at + 1;
  }
  if (text.length > start) items.push(text.slice(start));
  return listOf(items);
}

function splitText(...values: Value[]): Value {
  const [text, separators] = values.length > 1 ? values : [values[0], ', \t'];
  return typeof text === 'string' && typeof separators === 'string' ? split(text, separators) : ERROR;
}

/** The version of an argument syntax: 1 or 2. */
function syntaxVersion(values: readonly Value[]): 1 | 2 | undefined {
  if (values.length < 2) return 2;
  const [, version] = values;
  const number = isInt(version) ? toInt32(version) : 0;
  return number === 1 || number === 2 ? number : undefined;
}

function argsToList(...values: Value[]): Value {
  const version = syntaxVersion(values);
  const [text] = values;
  if (version === undefined || typeof text !== 'string') return ERROR;
  const words = version === 2 ? splitWords(text) : text.split(/[ \t\n\r]+/).filter((word) => word !== '');
  return words === undefined ? ERROR : listOf(words);
}

function listToArgs(each: Each, ...values: Value[]): Value {
  const version = syntaxVersion(values);
  const [list] = values;
  if (version === undefined || !(list instanceof ListValue)) return ERROR;
  const words: string[] = [];
  for (let at = 0; at < list.items.length; at += 1) {
    const word = each(list, at);
    if (typeof word !== 'string') return ERROR;
    words.push(word);
  }
  if (version === 2) return joinWords(words);
  return words.some((word) => /[ \t\n\r]/.test(word)) ? ERROR : words.reduce(appendV1, '');
}

/** V1 puts no blank before the first non-empty word. */
function appendV1(text: string, word: string): string {
  return text === '' ? word : `${text} ${word}`;
}

function environmentV1toV2(value: Value): Value {
  if (typeof value !== 'string') return value === undefined ? undefined : ERROR;
  const environment = readV1(value);
  return environment === undefined ? ERROR : printV2(environment);
}

function mergeEnvironment(...values: Value[]): Value {
  const environment: EnvironmentMap = new Map();
  for (const value of values) {
    if (value === undefined) continue;
    const entries = typeof value === 'string' ? splitWords(value) : undefined;
    if (entries === undefined || !entries.every((entry) => setEntry(environment, entry))) return ERROR;
  }
  return printV2(environment);
}

/** userMap(map, user [, preferred [, default]]). */
function userMap(state: EvalState, values: readonly Value[]): Value {
  const [map, user, preferred, otherwise] = values;
  const none = values.length === 4 ? otherwise : undefined;
  if (typeof map !== 'string' || typeof user !== 'string') return map === ERROR || user === ERROR ? ERROR : none;
  const mapped = state.options.userMap?.(map, user);
  if (mapped === undefined) return none;
  if (values.length === 2) return mapped;
  const groups = tokens(mapped, ',');
  const chosen = typeof preferred === 'string' ? groups.find((group) => sameText(group, preferred)) : undefined;
  return chosen ?? groups[0] ?? none;
}

/** HTCondor disables userHome() unless the administrator asks for it; here it is always disabled. */
function userHome(...values: Value[]): Value {
  const [owner, home] = values;
  if (typeof home === 'string' && home !== '') return home;
  return owner === undefined || typeof owner === 'string' ? undefined : ERROR;
}

export const CONDOR: FunctionTable = [
  ['split', pure(1, 2, splitText)],
  ['splitUserName', splitAt((text) => [text, ''])],
  ['splitSlotName', splitAt((text) => ['', text])],
  ['argsToList', pure(1, 2, argsToList)],
  ['listToArgs', overLists(1, 2, listToArgs)],
  ['envV1ToV2', pure(1, 1, environmentV1toV2)],
  ['mergeEnvironment', pure(0, Number.POSITIVE_INFINITY, mergeEnvironment)],
  [
    'userMap',
    {
      least: 2,
      most: 4,
      make:
        ({ args }) =>
        (state) =>
          userMap(
            state,
            args.map((arg) => arg(state)),
          ),
    },
  ],
  [
    'userHome',
    {
      least: 1,
      most: 2,
      failsOnCount: true,
      make:
        ({ args }) =>
        (state) =>
          userHome(...args.map((arg) => caught(state, () => arg(state)))),
    },
  ],
];
