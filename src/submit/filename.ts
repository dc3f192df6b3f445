import { isSpace } from './text.ts';

interface Parts {
  readonly path: boolean;
  readonly dirs: number;
  readonly name: boolean;
  readonly extension: boolean;
  readonly bare: boolean;
  readonly full: boolean;
  readonly quote: string;
  /** The kind of slash in the result; '' keeps both kinds. */
  readonly slash: '' | '/' | '\\';
}

function partsOf(letters: string): Parts {
  const has = (letter: string): boolean => letters.includes(letter);
  const quote = has('a') ? "'" : '"';
  const slashes = letters.replace(/[^wu]/g, '');
  return {
    path: has('p'),
    dirs: letters.split('d').length - 1,
    name: has('n'),
    extension: has('x'),
    bare: has('b'),
    full: has('f'),
    quote: has('q') ? quote : '',
    slash: slashes === '' ? '' : slashes.endsWith('w') ? '\\' : '/',
  };
}

function unquote(text: string, quote: string): string {
  const first = text[0];
  const inner = text.length > 1 && (first === '"' || first === "'") && text.endsWith(first) ? text.slice(1, -1) : text;
  const half = inner[0];
  if (half === undefined || (half !== '"' && half !== quote)) return inner;
  return inner.length > 1 && inner.endsWith(half) ? inner.slice(1, -1) : inner.slice(1);
}

function absolute(name: string, cwd: string): string {
  if (name.startsWith('/') || cwd === '') return name;
  const below = name.length > 2 && name.startsWith('./') ? name.slice(2) : name;
  return `${cwd.replace(/\/$/, '')}/${below}`;
}

/** Where the last `count` directories begin: at the start if one is missing, undefined if two are. */
function directoriesAt(text: string, count: number): number | undefined {
  const starts = [0];
  for (let i = 0; i < text.length; i++) if (text[i] === '/' || text[i] === '\\') starts.push(i + 1);
  return starts[starts.length - 1 - count];
}

/** The requested range of `text`, which includes its quotes. */
function select(text: string, parts: Parts, suffix: string | undefined): readonly [number, number] {
  const end = text.length;
  const nameAt = text.lastIndexOf('/') + 1;
  const dot = text.lastIndexOf('.');
  let extensionAt = dot > nameAt ? dot : end;
  let { path, dirs, extension } = parts;
  if (suffix !== undefined && end - suffix.length >= nameAt && text.toLowerCase().endsWith(suffix.toLowerCase())) {
    extensionAt = end - suffix.length;
    extension = false;
  }
  if (nameAt === 0 && (parts.name || extension)) {
    path = false;
    dirs = 0;
  }
  const directoryEnd = parts.bare && nameAt > 0 ? nameAt - 1 : nameAt;
  const pathEnd = extension ? end : parts.name ? extensionAt : directoryEnd;
  if (dirs > 0) {
    const from = nameAt === 0 ? undefined : directoriesAt(text, dirs);
    return from === undefined ? [1, 1] : [from, Math.max(from, pathEnd)];
  }
  if (path) return [0, pathEnd];
  if (parts.name) return [nameAt, extension ? end : extensionAt];
  if (extension) return [extensionAt + (parts.bare && extensionAt < end ? 1 : 0), end];
  return [0, end];
}

/**
 * $F…(path), $BASENAME and $DIRNAME (manual, "Function Macros"). The letters, in any order and case: p directory, d
 * last directory (dd two), n name, x extension, b without the slash or dot, f full path, q quoted, a in single quotes,
 * w backslashes, u slashes. HTCondor's quirks are kept: w with only p or d gives nothing, and the quotes are added
 * before the parts are found, so that a missing part becomes a lone quote.
 */
export function filenameParts(value: string, letters: string, cwd: string, suffix?: string): string {
  const parts = partsOf(letters.toLowerCase());
  const plain = unquote(value, parts.quote);
  const named = parts.full ? absolute(plain, cwd) : plain;
  const slashed = parts.slash === '' ? named : named.replaceAll(parts.slash === '/' ? '\\' : '/', parts.slash);
  const { quote } = parts;
  const text = quote + slashed + quote;
  const [from, to] = select(text, parts, suffix);
  if (quote === '') return text.slice(from, to);
  const opened = text[from] === quote ? from : from - 1;
  const closed = to > 1 && text[to - 1] === quote ? to - 1 : to;
  return quote.repeat(closed > opened ? 1 : 0) + text.slice(opened + 1, closed) + quote;
}

/** `$BASENAME(file, .ext)`: the argument, and the suffix to remove. */
export function splitSuffix(body: string): { readonly name: string; readonly suffix?: string } {
  const comma = body.lastIndexOf(',');
  if (comma < 0) return { name: body };
  let at = comma + 1;
  while (at < body.length && isSpace(body.charAt(at))) at++;
  return { name: body.slice(0, comma), suffix: body.slice(at) };
}
