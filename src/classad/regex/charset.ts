/** A set of bytes: a flag for each of the 256. */
export type CharSet = Uint8Array;

export function charSet(test: (code: number) => boolean): CharSet {
  return Uint8Array.from({ length: 256 }, (_, code) => (test(code) ? 1 : 0));
}

export function negated(set: CharSet): CharSet {
  return set.map((flag) => 1 - flag);
}

function between(first: string, last: string): (code: number) => boolean {
  return (code) => code >= first.charCodeAt(0) && code <= last.charCodeAt(0);
}

const digit = between('0', '9');
const lower = between('a', 'z');
const upper = between('A', 'Z');
const space = (code: number): boolean => code === 32 || (code >= 9 && code <= 13);
const alnum = (code: number): boolean => digit(code) || lower(code) || upper(code);
const graph = (code: number): boolean => code > 32 && code < 127;

/** A set that is made when it is first asked for: a process that reads no regular expression makes none. */
function lazily(test: (code: number) => boolean): () => CharSet {
  let set: CharSet | undefined;
  return () => (set ??= charSet(test));
}

const word = (code: number): boolean => alnum(code) || code === 95;
const horizontal = (code: number): boolean => code === 9 || code === 32 || code === 160;
const vertical = (code: number): boolean => (code >= 10 && code <= 13) || code === 133;
const not = (test: (code: number) => boolean) => lazily((code) => !test(code));

export const anyByte = lazily(() => true);
export const wordByte = lazily(word);

/** `\d` and similar, by letter. */
const SHORTHANDS: ReadonlyMap<string, () => CharSet> = new Map([
  ['d', lazily(digit)],
  ['D', not(digit)],
  ['w', wordByte],
  ['W', not(word)],
  ['s', lazily(space)],
  ['S', not(space)],
  ['h', lazily(horizontal)],
  ['H', not(horizontal)],
  ['v', lazily(vertical)],
  ['V', not(vertical)],
  ['N', lazily((code) => code !== 10)],
]);

/** `[:alpha:]` and similar, by name. */
const POSIX: ReadonlyMap<string, () => CharSet> = new Map([
  ['alpha', lazily((code) => lower(code) || upper(code))],
  ['lower', lazily(lower)],
  ['upper', lazily(upper)],
  ['alnum', lazily(alnum)],
  ['ascii', lazily((code) => code < 128)],
  ['blank', lazily((code) => code === 9 || code === 32)],
  ['cntrl', lazily((code) => code < 32 || code === 127)],
  ['digit', lazily(digit)],
  ['graph', lazily(graph)],
  ['print', lazily((code) => graph(code) || code === 32)],
  ['punct', lazily((code) => graph(code) && !alnum(code))],
  ['space', lazily(space)],
  ['word', wordByte],
  ['xdigit', lazily((code) => digit(code) || between('a', 'f')(code) || between('A', 'F')(code))],
]);

export function shorthandSet(letter: string): CharSet | undefined {
  return SHORTHANDS.get(letter)?.();
}

export function posixSet(name: string): CharSet | undefined {
  return POSIX.get(name)?.();
}

/** The other case of a letter; any other byte stays the same. */
export function otherCase(code: number): number {
  return lower(code) || upper(code) ? code ^ 32 : code;
}

/** The set, with the other case of each of its letters added. */
export function bothCases(set: CharSet): CharSet {
  return charSet((code) => set[code] === 1 || set[otherCase(code)] === 1);
}

/**
 * The bytes with a Unicode property (a category, a script, or one of PCRE's own) as the characters U+0000 to U+00FF.
 * `undefined` if there is no such property.
 */
export function propertySet(name: string, caseless: boolean): CharSet | undefined {
  const plain = name.replaceAll(/[\s_-]/g, '').toLowerCase();
  const source = PCRE_PROPERTIES[caseless && /^l[ult]$/.test(plain) ? 'l&' : plain] ?? unicodeProperty(plain);
  try {
    const pattern = new RegExp(source, 'u');
    return charSet((code) => pattern.test(String.fromCharCode(code)));
  } catch {
    return undefined;
  }
}

const PCRE_PROPERTIES: Readonly<Record<string, string>> = {
  any: '^',
  'l&': '[\\p{Lu}\\p{Ll}\\p{Lt}]',
  lc: '[\\p{Lu}\\p{Ll}\\p{Lt}]',
  xan: '[\\p{L}\\p{N}]',
  xsp: '[\\p{Z}\\t\\n\\v\\f\\r\\x85]',
  xps: '[\\p{Z}\\t\\n\\v\\f\\r\\x85]',
  xwd: '[\\p{L}\\p{N}_]',
};

function unicodeProperty(plain: string): string {
  const name = plain.charAt(0).toUpperCase() + plain.slice(1);
  return name.length <= 2 ? `\\p{gc=${name}}` : `\\p{scx=${name}}`;
}
