import { fileNameOf } from './names.ts';
import { Complaint } from './problem.ts';
import type { Command, ScriptSpec, ScriptType, Tolerance } from './commands.ts';
import type { Lexer } from './lexer.ts';
import { leadingInteger } from './numbers.ts';
import { endOfLine, type ParseContext, required, unexpected } from './parse-nodes.ts';
import { isAllNodes, sameWord } from './syntax.ts';

const NO_NODE = 'No node name specified';

export function parseDepend(words: Lexer, weak: boolean): Command {
  if (weak && !sameWord(words.next(), 'PARENT')) throw new Complaint('WEAK dependency missing PARENT keyword');
  const parents: string[] = [];
  const children: string[] = [];
  let list = parents;
  for (let word = words.next(); word !== ''; word = words.next()) {
    if (sameWord(word, 'CHILD')) {
      if (parents.length === 0) throw new Complaint('No parent node(s) specified');
      if (words.peek() === '') throw new Complaint('No children node(s) specified');
      list = children;
    } else list.push(word);
  }
  if (parents.length === 0) throw new Complaint('No parent node(s) specified');
  if (list === parents) throw new Complaint('Missing CHILD specifier');
  return { cmd: 'depend', parents, children, weak };
}

export function parseScript(words: Lexer): Command {
  let defer: ScriptSpec['defer'];
  let debug: ScriptSpec['debug'];
  for (;;) {
    const word = words.next();
    const type = word.toUpperCase();
    if (type === 'PRE' || type === 'POST' || type === 'HOLD') return scriptOf(type, words, defer, debug);
    if (type === 'DEFER') {
      const status = integer(required(words.next(), 'DEFER missing status value'), 'DEFER status value');
      const seconds = integer(required(words.next(), 'DEFER missing time value'), 'DEFER time value');
      defer = { status, seconds };
    } else if (type === 'DEBUG') {
      const file = required(words.next(), 'DEBUG missing filename');
      const named = required(words.next(), 'DEBUG missing output stream type (STDOUT, STDERR, ALL)');
      const stream = named.toUpperCase();
      if (stream !== 'STDOUT' && stream !== 'STDERR' && stream !== 'ALL') {
        throw new Complaint(`Unknown DEBUG output stream type '${named}'`);
      }
      debug = { file, stream };
    } else {
      throw new Complaint('Missing script type (PRE, POST, HOLD) and optional sub-commands (DEFER, DEBUG)');
    }
  }
}

function scriptOf(type: ScriptType, words: Lexer, defer: ScriptSpec['defer'], debug: ScriptSpec['debug']): Command {
  const node = required(words.next(), NO_NODE);
  const command = required(words.rest(), 'No script specified');
  return { cmd: 'script', node, type, script: { command, defer, debug } };
}

function integer(word: string, what: string): number {
  const value = leadingInteger(word);
  if (value === undefined) throw new Complaint(`Invalid ${what} '${word}'`);
  return value;
}

export function parseRetry(words: Lexer): Command {
  const node = required(words.next(), NO_NODE);
  const word = required(words.next(), 'Missing max retry value');
  const max = leadingInteger(word);
  if (max === undefined || max < 0) {
    throw new Complaint(`Invalid max retry value '${word}' (Must be positive integer)`);
  }
  let unlessExit: number | undefined;
  const option = words.next();
  if (option !== '') {
    if (!sameWord(option, 'UNLESS_EXIT')) throw unexpected(option);
    const code = required(words.next(), 'UNLESS-EXIT missing exit code');
    unlessExit = leadingInteger(code);
    if (unlessExit === undefined) throw new Complaint(`Invalid UNLESS-EXIT code '${code}' specified`);
    endOfLine(words);
  }
  return { cmd: 'retry', node, max, unlessExit };
}

export function parseAbort(words: Lexer): Command {
  const node = required(words.next(), NO_NODE);
  const word = required(words.next(), 'Missing exit status to abort on');
  const status = leadingInteger(word);
  if (status === undefined) throw new Complaint(`Invalid exit status '${word}' specified`);
  let code: number | undefined;
  const option = words.next();
  if (option !== '') {
    if (!sameWord(option, 'RETURN')) throw unexpected(option);
    const value = required(words.next(), 'RETURN is missing value');
    code = leadingInteger(value);
    if (code === undefined || code < 0 || code > 255) {
      throw new Complaint(`Invalid RETURN code '${value}' (Must be between 0 and 255)`);
    }
    endOfLine(words);
  }
  return { cmd: 'abort', node, status, code };
}

export function parseVars(words: Lexer): Command {
  const node = required(words.next(), NO_NODE);
  const option = placeWord(words);
  const place = sameWord(option, 'PREPEND') ? 'prepend' : sameWord(option, 'APPEND') ? 'append' : undefined;
  if (place !== undefined) words.next();
  const pairs = new Map<string, string>();
  for (let pair = words.pair(); pair !== undefined; pair = words.pair()) {
    let { key } = pair;
    if (key === '+' || key === 'My.') {
      throw new Complaint('Variable name must contain at least one alphanumeric character');
    }
    if (key.startsWith('+')) key = `My.${key.slice(1)}`;
    if (key.toLowerCase().startsWith('queue')) {
      throw new Complaint(`Illegal variable name '${key}': name can not begin with 'queue'`);
    }
    pairs.set(key, pair.value);
  }
  if (pairs.size === 0) throw new Complaint('No key=value pairs specified');
  // DAGMan sets the pairs of a line in the order of their names, which matters if two differ only in case.
  const sorted = [...pairs].sort(([a], [b]) => (a < b ? -1 : 1));
  return { cmd: 'vars', node, place, pairs: sorted.map(([key, value]) => ({ key, value })) };
}

/** The next word; if it is malformed, the complaint is about the pair to which it belongs. */
function placeWord(words: Lexer): string {
  try {
    return words.peek();
  } catch (thrown) {
    if (!(thrown instanceof Complaint)) throw thrown;
    while (words.pair() !== undefined);
    throw thrown;
  }
}

export function parsePriority(words: Lexer): Command {
  const node = required(words.next(), NO_NODE);
  const value = integer(required(words.next(), 'Missing priority value'), 'priority value');
  endOfLine(words);
  return { cmd: 'priority', node, value };
}

export function parsePreSkip(words: Lexer): Command {
  const node = required(words.next(), NO_NODE);
  const status = integer(required(words.next(), 'Missing exit code'), 'exit code');
  endOfLine(words);
  if (status < 0 || status > 255) throw new Complaint('PRE_SKIP exit code must be between 0 and 255');
  return { cmd: 'pre-skip', node, status };
}

export function parseTolerance(words: Lexer): Command {
  const node = required(words.next(), NO_NODE);
  let word = required(words.next(), 'Missing failure tolerance value');
  let percent = false;
  if (word.endsWith('%')) {
    word = required(word.slice(0, -1), 'Empty percentage specified for failure tolerance');
    percent = true;
  } else if (words.peek() === '%') {
    words.next();
    percent = true;
  }
  const limit = leadingInteger(word);
  if (limit === undefined || limit < 0) throw new Complaint(`Invalid tolerance value '${word}'`);
  let mode: Tolerance['mode'];
  const option = words.next();
  if (sameWord(option, 'FAIL_FAST')) mode = 'fail-fast';
  else if (sameWord(option, 'WAIT')) mode = 'wait';
  else if (option !== '') throw unexpected(option);
  endOfLine(words);
  return { cmd: 'tolerance', node, tolerance: { limit, percent, mode } };
}

/** If no file is named, a save point goes to `<node>-<DAG file>.save`. */
export function parseSavePoint(words: Lexer, context: ParseContext): Command {
  const node = required(words.next(), NO_NODE);
  if (isAllNodes(node)) throw new Complaint('ALL_NODES cannot be used for save point file command');
  const file = words.nextUnquoted();
  endOfLine(words);
  return { cmd: 'save-point', node, file: file === '' ? `${node}-${fileNameOf(context.file)}.save` : file };
}

export function parseCategory(words: Lexer): Command {
  const node = required(words.next(), NO_NODE);
  const category = required(words.next(), 'No category name specified');
  endOfLine(words);
  return { cmd: 'category', node, category };
}

export function parseMaxJobs(words: Lexer): Command {
  const category = required(words.next(), 'No category name specified');
  const word = required(words.next(), 'No throttle limit specified');
  const limit = leadingInteger(word);
  if (limit === undefined || limit < 0) throw new Complaint(`Invalid throttle limit '${word}'`);
  endOfLine(words);
  return { cmd: 'maxjobs', category, limit };
}

export function parseDone(words: Lexer): Command {
  const node = required(words.next(), NO_NODE);
  endOfLine(words);
  return { cmd: 'done', node };
}
