import type { Parsed } from './argv.ts';
import { isV2Quoted, parseArgsV2, printArgsV2, unquoteV2 } from './argv.ts';
import { byBytes, tokens, trimStart } from './text.ts';

/** The variables of an environment. The value `undefined` marks a `$$(…)` entry that is kept unchanged. */
export type Environment = ReadonlyMap<string, string | undefined>;

const DELIMITERS = '!#$%&*+,-/:;<>?@^`|~\x1f';

function addEntry(environment: Map<string, string | undefined>, entry: string): string | undefined {
  const equals = entry.indexOf('=');
  if (equals < 0 && entry.includes('$$')) {
    environment.set(entry, undefined);
    return undefined;
  }
  if (equals < 0) return `ERROR: Missing '=' after environment variable '${entry}'.`;
  if (equals === 0) return `ERROR: missing variable in '${entry}'.`;
  environment.set(entry.slice(0, equals), entry.slice(equals + 1));
  return undefined;
}

function fromEntries(entries: readonly string[]): Parsed<Environment> {
  const environment = new Map<string, string | undefined>();
  for (const entry of entries) {
    const reason = entry === '' ? 'ERROR: an environment entry is empty.' : addEntry(environment, entry);
    if (reason !== undefined) return { ok: false, reason };
  }
  return { ok: true, value: environment };
}

/**
 * V2 as in the job attribute `Environment`: entries as in `parseArgsV2`, each `NAME=value`; of equal names the last
 * wins.
 */
export function parseEnvV2(text: string): Parsed<Environment> {
  const entries = parseArgsV2(text);
  return entries.ok ? fromEntries(entries.value) : entries;
}

/**
 * V1 as in the job attribute `Env`: entries separated by `;` (or `delimiter`) or newlines; blanks at the end of an
 * entry belong to it. If the text begins with another punctuation character, that is its delimiter.
 */
export function parseEnvV1(text: string, delimiter = ';'): Parsed<Environment> {
  const first = text.charAt(0);
  const other = first !== delimiter && first !== '' && DELIMITERS.includes(first);
  const separator = other ? first : delimiter;
  const body = first === separator ? text.slice(1) : text;
  const entries = body.split('\n').flatMap((line) => line.split(separator));
  return fromEntries(entries.map(trimStart).filter((entry) => entry !== ''));
}

/** `environment = …` in a submit description: V2 if in double quotes, otherwise V1. */
export function parseEnvQuotedOrV1(text: string): Parsed<Environment> {
  if (!isV2Quoted(text)) return parseEnvV1(text);
  const raw = unquoteV2(text);
  return raw.ok ? parseEnvV2(raw.value) : raw;
}

function entriesOf(environment: Environment): string[] {
  return [...environment]
    .sort(([a], [b]) => byBytes(a, b))
    .map(([name, value]) => (value === undefined ? name : `${name}=${value}`));
}

/** The text of `Environment`, sorted by name; the inverse of `parseEnvV2`. */
export function printEnvV2(environment: Environment): string {
  return printArgsV2(entriesOf(environment));
}

/** The text of `Env`; `undefined` if an entry contains the delimiter or a newline, which V1 cannot express. */
export function printEnvV1(environment: Environment, delimiter = ';'): string | undefined {
  const entries = entriesOf(environment);
  return entries.some((entry) => entry.includes(delimiter) || entry.includes('\n'))
    ? undefined
    : entries.join(delimiter);
}

function wildcard(pattern: string): RegExp {
  const source = pattern.replace(/[\\^$.*+?()[\]{}|]/g, (char) => (char === '*' ? '.*' : `\\${char}`));
  return new RegExp(`^${source}$`, 'is');
}

/**
 * What `getenv` imports from the submitter's environment: names and patterns with `*`, ignoring case, except those
 * after `!`; if there are only exceptions, all other variables. Values with a newline are never imported.
 */
export function importEnvironment(
  list: string | true,
  environment: Readonly<Record<string, string | undefined>>,
): Map<string, string> {
  const patterns = list === true ? [] : tokens(list, ',; \t\r\n');
  const no = patterns.filter((pattern) => /^!./.test(pattern)).map((pattern) => wildcard(trimStart(pattern.slice(1))));
  const yes = patterns.filter((pattern) => !pattern.startsWith('!')).map(wildcard);
  const taken = new Map<string, string>();
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined || value.includes('\n') || no.some((pattern) => pattern.test(name))) continue;
    if (yes.length === 0 || yes.some((pattern) => pattern.test(name))) taken.set(name, value);
  }
  return taken;
}
