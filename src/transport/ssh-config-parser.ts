import { GryphusError } from '../errors.ts';

/** A line of ssh_config(5). `include` holds the files that an Include line named. */
export interface Directive {
  /** In lower case. */
  readonly keyword: string;
  readonly args: readonly string[];
  /** The unparsed text after the keyword, which ProxyCommand takes. */
  readonly rest: string;
  readonly file: string;
  readonly line: number;
  readonly include: readonly (readonly Directive[])[];
}

/** The files that the parser needs. */
export interface ConfigFiles {
  /** The text of a file, or undefined if it does not exist. */
  read(path: string): string | undefined;
  /** The files that match a glob pattern, sorted; paths are as in an Include line, with `~` and relative ones too. */
  glob(pattern: string): readonly string[];
}

const MAX_DEPTH = 16;

/** The directives of a file and of those it includes; a missing file has none. */
export function loadSshConfig(file: string, files: ConfigFiles, depth = 0): readonly Directive[] {
  const text = files.read(file);
  if (text === undefined) return [];
  if (depth > MAX_DEPTH) throw new GryphusError('bad-config', `${file}: Include lines are nested too deeply.`);
  return text.split('\n').flatMap((line, index) => {
    const directive = parseLine(line, file, index + 1);
    if (directive === undefined) return [];
    if (directive.keyword !== 'include') return [directive];
    const included = directive.args.flatMap((pattern) => files.glob(pattern));
    return [{ ...directive, include: included.map((path) => loadSshConfig(path, files, depth + 1)) }];
  });
}

/** Parses one line; undefined for an empty line or a comment. */
export function parseLine(line: string, file: string, number: number): Directive | undefined {
  const text = line.replace(/[ \t\r\f]+$/, '').replace(/^[ \t\r\f]+/, '');
  if (text === '' || text.startsWith('#')) return undefined;
  const found = /^(?:"([^"]*)"|([^\s="]+))[ \t]*=?[ \t]*(.*)$/s.exec(text);
  const keyword = (found?.[1] ?? found?.[2] ?? '').toLowerCase();
  const rest = found?.[3] ?? '';
  if (keyword === '') throw malformed(file, number, 'it has no keyword');
  const args = RAW.has(keyword) ? [rest] : splitArguments(rest);
  if (args === undefined) throw malformed(file, number, 'a quote is not closed');
  if (args.length === 0) throw malformed(file, number, `"${keyword}" has no value`);
  return { keyword, args, rest, file, line: number, include: [] };
}

const RAW = new Set(['proxycommand', 'localcommand', 'remotecommand', 'knownhostscommand']);

/**
 * Splits words as OpenSSH does (argv_split in misc.c): blanks separate words, single and double quotes keep them
 * together, a backslash escapes a quote, a backslash or a blank, and an unquoted `#` at the start of a word ends the
 * line. Undefined if a quote is open at the end.
 */
export function splitArguments(text: string): readonly string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    const next = text.charAt(at + 1);
    if (char === '\\' && (next === "'" || next === '"' || next === '\\' || (quote === undefined && next === ' '))) {
      word = (word ?? '') + next;
      at++;
    } else if (quote === undefined && (char === ' ' || char === '\t')) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (quote === undefined && char === '#' && word === undefined) {
      return words;
    } else if (quote === undefined && (char === '"' || char === "'")) {
      quote = char;
      word ??= '';
    } else if (char === quote) {
      quote = undefined;
    } else {
      word = (word ?? '') + char;
    }
  }
  if (quote !== undefined) return undefined;
  if (word !== undefined) words.push(word);
  return words;
}

function malformed(file: string, line: number, why: string): GryphusError {
  return new GryphusError('bad-config', `${file} line ${line}: ${why}.`, {
    suggestions: ['See ssh_config(5) for the syntax.'],
  });
}
