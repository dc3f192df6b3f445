import { compareText } from '../bytes.ts';

/**
 * Words of HTCondor's V2 syntax: blanks separate, '…' quotes, '' in quotes is a quote. `undefined` if a quote is not
 * closed.
 */
export function splitWords(text: string): string[] | undefined {
  const words: string[] = [];
  const word = /[ \t\n\r]*((?:[^ \t\n\r']|'(?:[^']|'')*')+)/y;
  for (;;) {
    const { lastIndex } = word;
    const found = word.exec(text);
    if (found === null) return /^[ \t\n\r]*$/.test(text.slice(lastIndex)) ? words : undefined;
    words.push(unquote(found[1] ?? ''));
  }
}

function unquote(word: string): string {
  return word.replace(/'((?:[^']|'')*)'/g, (_whole, inside: string) => inside.replaceAll("''", "'"));
}

/** The inverse: each run of blanks and quotes is put in one pair of quotes; an empty word is ''. */
export function joinWords(words: readonly string[]): string {
  return words.map((word) => (word === '' ? "''" : word.replace(/[ \t\n\r']+/g, quoteRun))).join(' ');
}

function quoteRun(run: string): string {
  return `'${run.replaceAll("'", "''")}'`;
}

const ENV_DELIMITERS = '!#$%&*+,-/:;<>?@^`|~\x1f';

/** An environment; the value is `undefined` for a $$() macro that is an entry by itself. */
export type EnvironmentMap = Map<string, string | undefined>;

/** Adds `NAME=value` to the environment; returns false if it is malformed. */
export function setEntry(environment: EnvironmentMap, entry: string): boolean {
  const equals = entry.indexOf('=');
  if (equals > 0) environment.set(entry.slice(0, equals), entry.slice(equals + 1));
  else if (equals < 0 && entry.includes('$$')) environment.set(entry, undefined);
  else return false;
  return true;
}

/** V1: entries separated by newlines and a delimiter (`;`, or the character that the text begins with). */
export function readV1(text: string): EnvironmentMap | undefined {
  const environment: EnvironmentMap = new Map();
  const own = text !== '' && ENV_DELIMITERS.includes(text.charAt(0));
  const delimiter = own ? text.charAt(0) : ';';
  const entries = (own ? text.slice(1) : text).replaceAll(delimiter, '\n').split('\n');
  for (const entry of entries) {
    const trimmed = entry.replace(/^[ \t\n\r]+/, '');
    if (trimmed !== '' && !setEntry(environment, trimmed)) return undefined;
  }
  return environment;
}

export function printV2(environment: EnvironmentMap): string {
  const names = [...environment.keys()].sort(compareText);
  return joinWords(
    names.map((name) => {
      const value = environment.get(name);
      return value === undefined ? name : `${name}=${value}`;
    }),
  );
}
