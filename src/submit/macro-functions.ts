import { isFormat, printf } from '../util/printf.ts';
import { integerOf, printed, realOf, stringOf } from './calculate.ts';
import { filenameParts, splitSuffix } from './filename.ts';
import { tokens, trim } from './text.ts';

/** What a macro function can ask of its context. */
export interface FunctionScope {
  lookup(name: string): string | undefined;
  expand(text: string): string;
  env(name: string): string | undefined;
  /** From 0 up to but excluding 1. */
  random(): number;
  /** Reports an error after which HTCondor carries on. */
  complain(message: string): void;
  /** The directory to which relative names refer. */
  readonly cwd: string;
}

const INT_MAX = 2_147_483_647n;

/** The expanded value of the macro `name`, or else of `name` itself. */
function valueOf(name: string, scope: FunctionScope): string {
  const value = scope.lookup(name) ?? name;
  return value.includes('$') ? scope.expand(value) : value;
}

function splitDefault(body: string): readonly [string, string | undefined] {
  const colon = body.indexOf(':');
  return colon < 0 ? [body, undefined] : [body.slice(0, colon), body.slice(colon + 1)];
}

/** `$(name)` and `$(name:default)`: the default also replaces an empty value. */
export function reference(body: string, scope: FunctionScope): string {
  const [name, fallback] = splitDefault(body);
  const value = scope.lookup(name) ?? '';
  return value === '' ? (fallback ?? '') : value;
}

function env(body: string, scope: FunctionScope): string {
  const [name, fallback] = splitDefault(body);
  return scope.env(name) ?? fallback ?? 'UNDEFINED';
}

function pick(items: readonly string[], scope: FunctionScope): string | undefined {
  return items[Math.floor(scope.random() * items.length)];
}

function randomChoice(body: string, scope: FunctionScope): string {
  let items = tokens(body, ',');
  const only = items.length === 1 ? scope.lookup(items[0] ?? '') : undefined;
  if (only !== undefined) items = tokens(only.includes('$') ? scope.expand(only) : only);
  const picked = pick(items, scope);
  if (picked === undefined) scope.complain('$RANDOM_CHOICE() macro is empty!');
  return picked ?? '';
}

function leadingInteger(text: string | undefined): number | undefined {
  const found = /^\s*[+-]?\d+/.exec(text ?? '');
  return found ? Number(found[0]) : undefined;
}

function randomInteger(body: string, scope: FunctionScope): string {
  const [first, second, third] = tokens(body, ',');
  const wrong = (what: string): void => scope.complain(`$RANDOM_INTEGER() config macro: ${what}!`);
  let min = leadingInteger(first);
  if (min === undefined) wrong('invalid min');
  min ??= 0;
  let max = leadingInteger(second);
  if (max === undefined) wrong('invalid max');
  max ??= min;
  let step = third === undefined ? 1 : (leadingInteger(third) ?? 1);
  if (step < 1) {
    wrong('invalid step');
    step = 1;
  }
  if (min > max) {
    wrong('min > max');
    min = max;
  }
  const choices = Math.floor((step + max - min) / step);
  return String(min + Math.floor(scope.random() * choices) * step);
}

function choice(body: string, scope: FunctionScope): string {
  const comma = body.indexOf(',');
  const indexText = valueOf(trim(comma < 0 ? body : body.slice(0, comma)), scope);
  let index = integerOf(indexText);
  if (index === undefined || index < 0n || index >= INT_MAX) {
    scope.complain(`$CHOICE() error: '${indexText}' is invalid index`);
    index = 0n;
  }
  if (comma < 0) {
    scope.complain('$CHOICE() error: no list');
    return '';
  }
  let list = body.slice(comma + 1);
  if (!list.includes(',')) {
    const named = scope.lookup(trim(list));
    if (named === undefined) {
      scope.complain(`$CHOICE() macro: no list named "${trim(list)}"!`);
      return '';
    }
    list = scope.expand(named);
  }
  const item = list.split(',')[Number(index)];
  if (item === undefined) scope.complain(`$CHOICE() config macro: index ${index} is out of range!`);
  return trim(item ?? '');
}

function smallInteger(text: string): number | undefined {
  const value = integerOf(text);
  return value === undefined || value > INT_MAX || value < -INT_MAX - 1n ? undefined : Number(value);
}

function substring(body: string, scope: FunctionScope): string {
  const [name, startText, lengthText] = splitTwice(body);
  if (startText === undefined) {
    scope.complain('$SUBSTR() macro: no length specified!');
    return '';
  }
  const start = smallInteger(valueOf(startText, scope));
  if (start === undefined) {
    scope.complain(`$SUBSTR() macro: ${valueOf(startText, scope)} is invalid start index!`);
    return '';
  }
  const length = lengthText === undefined ? undefined : smallInteger(valueOf(lengthText, scope));
  if (lengthText !== undefined && length === undefined) {
    scope.complain(`$SUBSTR() macro: ${valueOf(lengthText, scope)} is invalid length !`);
    return '';
  }
  const value = scope.lookup(name);
  if (value === undefined) return '';
  const text = value.includes('$') ? scope.expand(value) : value;
  const from = Math.min(Math.max(start < 0 ? text.length + start : start, 0), text.length);
  const rest = text.slice(from);
  if (length === undefined) return rest;
  return rest.slice(0, length < 0 ? Math.max(rest.length + length, 0) : length);
}

/** Splits at the first two commas; everything after the second is one piece. */
function splitTwice(body: string): readonly [string, string?, string?] {
  const first = body.indexOf(',');
  if (first < 0) return [body];
  const second = body.indexOf(',', first + 1);
  if (second < 0) return [body.slice(0, first), body.slice(first + 1)];
  return [body.slice(0, first), body.slice(first + 1, second), body.slice(second + 1)];
}

function splitFormat(body: string): readonly [string, string | undefined] {
  const comma = body.indexOf(',');
  return comma < 0 ? [body, undefined] : [body.slice(0, comma), body.slice(comma + 1)];
}

function notFormat(func: string, format: string, scope: FunctionScope): string {
  scope.complain(`${func} macro: '${format}' is not a valid format specifier!`);
  return format;
}

/** The length of the buffer into which the tool prints numbers. */
const NUMBER_BUFFER = 55;

function int(body: string, scope: FunctionScope): string {
  const [name, format] = splitFormat(body);
  if (format !== undefined && !isFormat(format, 'int')) return notFormat('$INT()', format, scope);
  const text = valueOf(name, scope);
  const value = integerOf(text);
  if (value === undefined) {
    scope.complain(`$INT() macro: ${text} does not evaluate to an integer!`);
    return '';
  }
  return printf(format ?? '%lld', value).slice(0, NUMBER_BUFFER);
}

function real(body: string, scope: FunctionScope): string {
  const [name, format] = splitFormat(body);
  if (format !== undefined && !isFormat(format, 'real')) return notFormat('$REAL()', format, scope);
  const text = valueOf(name, scope);
  const value = realOf(text);
  if (value === undefined) {
    scope.complain(`$REAL() macro: ${text} does not evaluate to an real!`);
    return '';
  }
  const digits = printf(format ?? '%.16G', value).slice(0, NUMBER_BUFFER);
  return format !== undefined && !digits.includes('.') ? `${digits}.0` : digits;
}

function string(body: string, scope: FunctionScope): string {
  const [name, format] = splitFormat(body);
  if (format !== undefined && !isFormat(format, 'string')) return notFormat('$STRING', format, scope);
  const text = valueOf(name, scope);
  const value = stringOf(text) ?? text;
  return format === undefined ? value : printf(format, value);
}

function evaluate(body: string, scope: FunctionScope): string {
  const text = valueOf(body, scope);
  // Text without a value is kept only if there was something to expand in it.
  return stringOf(text) ?? printed(text) ?? ((scope.lookup(body) ?? body).includes('$') ? text : '');
}

function basename(body: string, scope: FunctionScope): string {
  const { name, suffix } = splitSuffix(body);
  return filenameParts(valueOf(name, scope), 'nx', scope.cwd, suffix);
}

const BY_NAME: Readonly<Record<string, (body: string, scope: FunctionScope) => string>> = {
  ENV: env,
  RANDOM_CHOICE: randomChoice,
  RANDOM_INTEGER: randomInteger,
  CHOICE: choice,
  SUBSTR: substring,
  INT: int,
  REAL: real,
  STRING: string,
  EVAL: evaluate,
  BASENAME: basename,
  DIRNAME: (body, scope) => filenameParts(valueOf(body, scope), 'p', scope.cwd),
};

/** The value of `$FUNC(body)` (manual, "Function Macros"). */
export function callFunction(func: string, body: string, scope: FunctionScope): string {
  const known = BY_NAME[func];
  return known ? known(body, scope) : filenameParts(valueOf(body, scope), func.slice(1), scope.cwd);
}

/** Functions that may return a different value each time. */
export function isRandom(func: string): boolean {
  return func.startsWith('RANDOM_');
}
