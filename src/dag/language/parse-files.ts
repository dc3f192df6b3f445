import { parseEnvQuotedOrV1 } from '../../submit/api.ts';
import { Complaint } from './problem.ts';
import type { Command } from './commands.ts';
import type { Lexer } from './lexer.ts';
import { leadingInteger } from './numbers.ts';
import { endOfLine, required, unexpected } from './parse-nodes.ts';
import { sameWord } from './syntax.ts';

/** Parses the single path of a CONFIG, INCLUDE or JOBSTATE_LOG. */
export function parseFile(words: Lexer, missing: string): string {
  const file = required(words.nextUnquoted(), missing);
  endOfLine(words);
  return file;
}

export function parseDot(words: Lexer): Command {
  const file = required(words.nextUnquoted(), 'No file specified');
  let update = false;
  let overwrite = false;
  let include: string | undefined;
  for (let word = words.next(); word !== ''; word = words.next()) {
    if (sameWord(word, 'UPDATE')) update = true;
    else if (sameWord(word, 'DONT_UPDATE')) update = false;
    else if (sameWord(word, 'OVERWRITE')) overwrite = true;
    else if (sameWord(word, 'DONT_OVERWRITE')) overwrite = false;
    else if (sameWord(word, 'INCLUDE')) include = required(words.next(), 'Missing INCLUDE header file');
    else throw unexpected(word);
  }
  return { cmd: 'dot', dot: { file, update, overwrite, include } };
}

/** Default number of seconds between two writes of the node status file (manual, NODE_STATUS_FILE). */
const MIN_UPDATE = 60;

export function parseNodeStatus(words: Lexer): Command {
  const file = required(words.nextUnquoted(), 'No file specified');
  let minUpdate = MIN_UPDATE;
  let alwaysUpdate = false;
  for (let word = words.next(); word !== ''; word = words.next()) {
    if (sameWord(word, 'ALWAYS_UPDATE')) alwaysUpdate = true;
    else {
      const seconds = leadingInteger(word);
      if (seconds === undefined) throw unexpected(word);
      minUpdate = seconds;
    }
  }
  return { cmd: 'node-status', status: { file, minUpdate, alwaysUpdate } };
}

export function parseEnv(words: Lexer): Command {
  const action = required(words.next(), 'Missing action (SET or GET) and variables').toUpperCase();
  if (action !== 'SET' && action !== 'GET') throw unexpected(action);
  const variables = required(words.rest(), 'No environment variables provided');
  if (action === 'GET') return { cmd: 'env', action, names: variables.split(/[\s,]+/).filter((name) => name !== '') };
  const set = parseEnvQuotedOrV1(variables);
  if (!set.ok) throw new Complaint(set.reason, 'Write ENV SET NAME=value;NAME=value.');
  return {
    cmd: 'env',
    action,
    set: [...set.value].flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  };
}

/** `SET_JOB_ATTR name = value`, where neither side may be empty. */
export function parseSetAttr(words: Lexer): Command {
  const line = required(words.rest(), 'No attribute line (key = value) provided');
  if (!/^\+?[A-Za-z_][A-Za-z0-9_.]*\s*=\s*\S/.test(line)) {
    throw new Complaint(`'${line}' is not an attribute line (key = value)`, 'Write SET_JOB_ATTR <name> = <value>.');
  }
  return { cmd: 'set-attr', line };
}

export function parseReject(words: Lexer): Command {
  endOfLine(words);
  return { cmd: 'reject' };
}

export function parseConnect(words: Lexer): Command {
  const from = words.next();
  const to = required(words.next(), 'Missing splice(s) to connect');
  endOfLine(words);
  return { cmd: 'connect', from, to };
}

export function parsePin(words: Lexer, side: 'in' | 'out'): Command {
  const node = required(words.next(), 'No node name specified');
  const word = required(words.next(), 'No pin number specified');
  const pin = leadingInteger(word);
  if (pin === undefined || pin < 1) throw new Complaint(`Invalid pin number '${word}'`);
  endOfLine(words);
  return { cmd: 'pin', side, node, pin };
}
