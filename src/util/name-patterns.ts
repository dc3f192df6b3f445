/*
 * Patterns of file names in a job's directory (`stream_results`), as in a shell: `*` stands for any characters, `?` for one,
 * `[a-z]` and `[!a-z]` for one of a set. None stands for a slash, nor for a dot at the beginning of a name.
 */

/** Why it is no pattern of names in a job's directory, as the end of a sentence about it. */
export function patternFault(pattern: string): string | undefined {
  if (pattern.startsWith('/')) return 'is absolute';
  if (pattern.includes('\0')) return 'contains a NUL character';
  if (pattern.includes('\\')) return 'contains a backslash';
  const parts = pattern.split('/');
  if (parts.includes('..')) return "is outside the job's directory";
  return parts.some((part) => part === '' || part === '.') ? 'is not the pattern of a file' : undefined;
}

/** Whether a name, relative to the job's directory, matches one of the patterns. */
export function nameMatcher(patterns: readonly string[]): (name: string) => boolean {
  const all = patterns.map((pattern) => pattern.split('/').map(parse));
  return (name) => {
    const parts = name.split('/').map((part) => Array.from(part));
    return all.some(
      (pattern) => pattern.length === parts.length && pattern.every((of, i) => isMatch(parts[i] ?? [], of)),
    );
  };
}

/**
 * A pattern for find and other programs, whose `*` may also stand for a slash or a dot: it matches all names that this one
 * matches, and others. Its characters mean nothing to a shell but `*`.
 */
export function withStarsOnly(pattern: string): string {
  return pattern
    .split('/')
    .map((part) => parse(part).map(({ literal = '*' }) => (/[\w.+,@=-]/.test(literal) ? literal : '*')))
    .map((part) => part.join('').replaceAll(/\*+/g, '*'))
    .join('/');
}

/** A part of a pattern: `*`, or what one character has to be. */
type Token =
  | { readonly any: true; readonly literal?: undefined }
  | { readonly any?: false; readonly one: (char: string) => boolean; readonly literal?: string };

function parse(part: string): Token[] {
  const chars = Array.from(part);
  const parsed: Token[] = [];
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i] ?? '';
    // A set has at least one member, which may be `]`.
    const close = char === '[' ? chars.indexOf(']', i + (isNegation(chars[i + 1]) ? 3 : 2)) : -1;
    if (char === '*') parsed.push({ any: true });
    else if (char === '?') parsed.push({ one: () => true });
    else if (close < 0) parsed.push({ one: (other) => other === char, literal: char });
    else {
      parsed.push({ one: setOf(chars.slice(i + 1, close)) });
      i = close;
    }
  }
  return parsed;
}

function isNegation(char: string | undefined): boolean {
  return char === '!' || char === '^';
}

function setOf(members: readonly string[]): (char: string) => boolean {
  const not = isNegation(members[0]);
  const chars = not ? members.slice(1) : members;
  const ranges: (readonly [from: string, to: string])[] = [];
  for (let i = 0; i < chars.length; i++) {
    const from = chars[i] ?? '';
    const to = chars[i + 1] === '-' ? chars[i + 2] : undefined;
    ranges.push([from, to ?? from]);
    if (to !== undefined) i += 2;
  }
  const code = (char: string) => char.codePointAt(0) ?? 0;
  return (char) => ranges.some(([from, to]) => code(from) <= code(char) && code(char) <= code(to)) !== not;
}

/** In time that grows with the product of the lengths only: a hostile site chooses the name. */
function isMatch(chars: readonly string[], tokens: readonly Token[]): boolean {
  if (chars[0] === '.' && tokens[0]?.literal !== '.') return false;
  let at = 0;
  let next = 0;
  /** The last star, and where what it stands for ends. */
  let star = -1;
  let end = 0;
  while (at < chars.length) {
    const token = tokens[next];
    if (token?.any) {
      star = next++;
      end = at;
    } else if (token?.one(chars[at] ?? '')) {
      at++;
      next++;
    } else if (star >= 0) {
      next = star + 1;
      at = ++end;
    } else return false;
  }
  while (tokens[next]?.any) next++;
  return next === tokens.length;
}
