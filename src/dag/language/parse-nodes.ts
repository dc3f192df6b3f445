import { Complaint } from './problem.ts';
import type { Command, NodeType } from './commands.ts';
import { Lexer } from './lexer.ts';
import type { LineReader } from './lines.ts';
import { isReserved, sameWord } from './syntax.ts';

/** What the parsers of single commands need in addition to the line. */
export interface ParseContext {
  readonly lines: LineReader;
  /** The name of the file, as the user gave it. */
  readonly file: string;
}

/** Rejects anything left on the line. */
export function endOfLine(words: Lexer): void {
  const word = words.next();
  if (word !== '') throw unexpected(word);
}

export function unexpected(word: string): Complaint {
  const remedy = word.startsWith('#') ? 'Put the comment on its own line.' : undefined;
  return new Complaint(`Unexpected token '${word}'`, remedy);
}

/** Returns the word, or throws the complaint if it is missing. */
export function required(word: string, complaint: string): string {
  if (word === '') throw new Complaint(complaint);
  return word;
}

/** JOB, FINAL, PROVISIONER, SERVICE, SUBDAG EXTERNAL. */
export function parseNode(type: NodeType, line: Lexer, context: ParseContext): Command {
  if (type === 'SUBDAG' && !sameWord(line.next(), 'EXTERNAL')) throw new Complaint('Missing EXTERNAL keyword');
  const name = required(line.next(), 'Missing node name');
  if (isReserved(name)) throw new Complaint(`Node name is a reserved word`, `Choose another name than ${name}.`);
  const submit = required(line.nextUnquoted(), 'No submit description provided');
  let words = line;
  let inline: string | undefined;
  const closing = type === 'SUBDAG' ? undefined : closingOf(submit);
  if (closing !== undefined) {
    const block = inlineBlock(closing, context.lines);
    if (block.text === '')
      throw new Complaint(`The inline submit description of ${name} is empty`, 'Write its commands.');
    inline = block.text;
    words = new Lexer(block.after);
  }
  let dir: string | undefined;
  let noop = false;
  let done = false;
  for (let word = words.next(); word !== ''; word = words.next()) {
    if (sameWord(word, 'NOOP')) noop = true;
    else if (sameWord(word, 'DONE')) done = true;
    else if (sameWord(word, 'DIR'))
      dir = required(words.nextUnquoted(), 'No directory path provided for DIR subcommand');
    else throw unexpected(word);
  }
  return { cmd: 'node', type, name, submit, inline, dir, noop, done };
}

export function parseDescription(words: Lexer, context: ParseContext): Command {
  const name = required(words.next(), 'No submit description name provided');
  const closing = closingOf(words.next());
  if (closing === undefined) throw new Complaint('No inline description provided');
  return { cmd: 'description', name, text: inlineBlock(closing, context.lines).text };
}

export function parseSplice(words: Lexer): Command {
  const name = required(words.next(), 'Missing splice name');
  const file = required(words.nextUnquoted(), 'Missing DAG file');
  let dir: string | undefined;
  const word = words.next();
  if (word !== '') {
    if (!sameWord(word, 'DIR')) throw unexpected(word);
    dir = required(words.nextUnquoted(), 'No directory path provided for DIR subcommand');
    endOfLine(words);
  }
  return { cmd: 'splice', name, file, dir };
}

/** The line that closes the inline description begun by `opening`; `undefined` if none begins. */
function closingOf(opening: string): string | undefined {
  if (opening.startsWith('{')) return '}';
  if (!opening.startsWith('@=')) return undefined;
  if (opening.length === 2) throw new Complaint('No inline description closing token specified (@=TOKEN)');
  return `@${opening.slice(2)}`;
}

function inlineBlock(closing: string, lines: LineReader): { readonly text: string; readonly after: string } {
  let text = '';
  for (let line = lines.raw(); line !== undefined; line = lines.raw()) {
    if (line === closing || line.startsWith(`${closing} `)) return { text, after: line.slice(closing.length) };
    text += `${line}\n`;
  }
  throw new Complaint(
    `Missing inline description closing token: ${closing}`,
    `Write ${closing} on its own line after the description.`,
  );
}
