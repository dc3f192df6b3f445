import { basename } from 'node:path';

/** What a placeholder stands for: an input or a part of it, or a number. */
export type What = keyof typeof PARTS | keyof typeof NUMBERS;

/** `list`: counts from 1; `undefined`: all. */
export interface Place {
  readonly written: string;
  readonly list: number | undefined;
  readonly what: What;
  /** A task may lack it: the last one of a list that is given out by twos or more. */
  readonly optional: boolean;
}

/** How placeholders are written in a map's words. */
export interface Style {
  /** How many inputs a task gets from its list; the last one may get fewer. */
  readonly size: number;
  /** Instead of `{}` (-I). */
  readonly whole?: string | undefined;
  /** Also `{..}`, `{+.}` and the like (--plus). */
  readonly plus?: boolean;
  /** A word is repeated for each of a task's inputs (-X). */
  readonly context?: boolean;
  /** All tasks, for `{##}`. */
  readonly total?: number | undefined;
}

const PARTS = {
  '': (input: string) => input,
  '.': (input: string) => withoutSuffixes(input, 1),
  '/': (input: string) => input.slice(input.lastIndexOf('/') + 1),
  '//': directory,
  '/.': (input: string) => withoutSuffixes(PARTS['/'](input), 1),
  '..': (input: string) => withoutSuffixes(input, 2),
  '...': (input: string) => withoutSuffixes(input, 3),
  '/..': (input: string) => withoutSuffixes(PARTS['/'](input), 2),
  '/...': (input: string) => withoutSuffixes(PARTS['/'](input), 3),
  '+/': (input: string) => (input.includes('/') ? input.slice(0, input.lastIndexOf('/')) : ''),
  '+.': (input: string) => suffixes(input, 1),
  '+..': (input: string) => suffixes(input, 2),
  '+...': (input: string) => suffixes(input, 3),
} as const;

/** The task's number, that of its slot, and how many tasks there are. */
const NUMBERS = { '#': 0, '%': 1, '##': 2 } as const;

/** Longer ones first; `${` belongs to the shell. */
const PLAIN = /(?<!\$)\{(?:(\d+)?(\/\.|\/\/|\/|\.)?|(#|%))\}/g;
const PLUS = /(?<!\$)\{(?:(\d+)?(\+\.{1,3}|\+\/|\/\.{1,3}|\/\/|\/|\.{1,3})?|(##|#|%))\}/g;

/** Texts and placeholders in turn. */
export function split(text: string, { size, whole, plus = false }: Style): (string | Place)[] {
  const known = plus ? PLUS : PLAIN;
  const all =
    whole === undefined ? known : new RegExp(`${known.source}|${whole.replaceAll(/[^\p{L}\p{N}_\s]/gu, '\\$&')}`, 'g');
  const pieces: (string | Place)[] = [];
  let from = 0;
  for (const found of text.matchAll(all)) {
    const [written, list, part = '', number] = found;
    // With another word for all of the input, `{}` is a text.
    if (whole !== undefined && written === '{}' && whole !== '{}') continue;
    pieces.push(text.slice(from, found.index));
    const place = list === undefined ? undefined : Number(list);
    const optional = size !== 1 && place !== undefined && place <= Math.max(1, size);
    pieces.push({ written, list: place, what: (number ?? part) as What, optional });
    from = found.index + written.length;
  }
  return [...pieces, text.slice(from)];
}

export function isNumber(what: What): what is keyof typeof NUMBERS {
  return what in NUMBERS;
}

/** `input`: as a shell has it. */
export function partOf(what: Exclude<What, keyof typeof NUMBERS>, input: string): string {
  return PARTS[what](input);
}

/** Without the last so many; as it is if there are fewer. */
function withoutSuffixes(input: string, count: number): string {
  let left = input;
  for (let i = 0; i < count; i++) {
    const dot = left.lastIndexOf('.');
    if (dot <= left.lastIndexOf('/')) return input;
    left = left.slice(0, dot);
  }
  return left;
}

/** The last so many, without the dot before them; none if there are fewer. */
function suffixes(input: string, count: number): string {
  const parts = basename(input).split('.');
  return parts.length > count ? parts.slice(-count).join('.') : '';
}

function directory(input: string): string {
  const slash = input.lastIndexOf('/');
  return slash < 0 ? '.' : slash === 0 ? '/' : input.slice(0, slash);
}
