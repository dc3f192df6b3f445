import { isBlank } from './text.ts';

/** A value, or one sentence about what is wrong with the text. */
export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

const BLANK = /[ \t\n\r]/;

/** V1 as in the job attribute `Args`: words separated by blanks, with no special characters. */
export function parseArgsV1(args: string): string[] {
  return args.split(/[ \t\n\r]+/).filter((word) => word !== '');
}

/** V1 in a submit description: a double quote must be written as `\"`. Returns the text for `Args`. */
export function unescapeArgsV1(text: string): Parsed<string> {
  if (!text.includes('"')) return { ok: true, value: text };
  let raw = '';
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') return { ok: false, reason: `Found illegal unescaped double-quote: ${text.slice(at)}` };
    if (text[at] === '\\' && text[at + 1] === '"') at++;
    raw += text.charAt(at);
  }
  return { ok: true, value: raw };
}

/** Whether a value in a submit description uses the V2 syntax, that is, begins with a double quote. */
export function isV2Quoted(text: string): boolean {
  return /^[ \t\n\v\f\r]*"/.test(text);
}

/** Removes the double quotes around V2 text; those inside are doubled. */
export function unquoteV2(text: string): Parsed<string> {
  const start = text.indexOf('"') + 1;
  let raw = '';
  let at = start;
  for (; at < text.length; at++) {
    if (text[at] === '"') {
      if (text[at + 1] !== '"') break;
      at++;
    }
    raw += text.charAt(at);
  }
  if (at >= text.length) return { ok: false, reason: 'Unterminated double-quote.' };
  if (isBlank(text.slice(at + 1))) return { ok: true, value: raw };
  return {
    ok: false,
    reason:
      'Unexpected characters following double-quote.  Did you forget to escape the double-quote by repeating it?  ' +
      `Here is the quote and trailing characters: ${text.slice(at)}`,
  };
}

/** V2 as in the job attribute `Arguments`: blanks separate, single quotes group, a quote inside them is doubled. */
export function parseArgsV2(args: string): Parsed<string[]> {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < args.length; at++) {
    const char = args.charAt(at);
    if (BLANK.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (char === "'") {
      const open = at;
      word ??= '';
      for (at++; at < args.length; at++) {
        if (args[at] === "'" && args[at + 1] !== "'") break;
        if (args[at] === "'") at++;
        word += args.charAt(at);
      }
      if (at >= args.length) return { ok: false, reason: `Unbalanced quote starting here: ${args.slice(open)}` };
    } else word = (word ?? '') + char;
  }
  if (word !== undefined) words.push(word);
  return { ok: true, value: words };
}

/** V2 in a submit description, in double quotes. */
export function parseArgsV2Quoted(text: string): Parsed<string[]> {
  if (!isV2Quoted(text)) return { ok: false, reason: 'Expecting double-quoted input string (V2 format).' };
  const raw = unquoteV2(text);
  return raw.ok ? parseArgsV2(raw.value) : raw;
}

function appendV2(result: string, word: string): string {
  let text = result === '' ? '' : `${result} `;
  if (word === '') return `${text}''`;
  for (const char of word) {
    if (!BLANK.test(char) && char !== "'") {
      text += char;
      continue;
    }
    text = text.endsWith("'") ? text.slice(0, -1) : `${text}'`;
    text += char === "'" ? "'''" : `${char}'`;
  }
  return text;
}

/**
 * The text of `Arguments` for these words, the inverse of `parseArgsV2`. Quotes only what needs it, as HTCondor does.
 */
export function printArgsV2(words: readonly string[]): string {
  return words.reduce(appendV2, '');
}

/** The text of `Args` for these words; `undefined` if V1 cannot express one that is empty or contains a blank. */
export function printArgsV1(words: readonly string[]): string | undefined {
  return words.some((word) => word === '' || BLANK.test(word)) ? undefined : words.join(' ');
}
