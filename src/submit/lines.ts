import { badInput, type SourcePlace } from './fault.ts';
import { trim, trimEnd, trimStart } from './text.ts';

/** The text of one statement: trimmed, with continued lines joined. */
export interface Line {
  readonly text: string;
  /** The physical line on which it starts, from 1. */
  readonly line: number;
}

/** The longest statement, in characters: each of its jobs carries the result. */
const LONGEST = 2 ** 24;

/** What decoding puts in place of bytes that are not UTF-8. */
const REPLACED = '\uFFFD';

/** Some editors begin a file in UTF-8 with it. */
const MARK = /^\uFEFF/;

/** A job would get other bytes than the user wrote, in its arguments or the names of its files. */
export function refuseReplaced(text: string, place: SourcePlace): void {
  if (!text.includes(REPLACED)) return;
  throw badInput(place, 'the line contains bytes that are not UTF-8', [
    'If they are Latin-1, convert the file: iconv -f latin1 -t utf-8',
  ]);
}

/**
 * Reads a submit description line by line. A backslash at the end of a line (ignoring trailing blanks) joins the next
 * line without its indentation; a comment is never continued. A comment between continued lines is refused unless it
 * ends in a backslash itself, because HTCondor keeps the comment's last character as part of the value.
 */
export class LineReader {
  readonly file: string;
  readonly #lines: readonly string[];
  readonly #hasReplaced: boolean;
  #next = 0;

  constructor(text: string, file: string) {
    this.file = file;
    if (text.includes('\0')) {
      throw badInput(undefined, `${file} is not a text file: it contains a NUL byte`, ['Give a submit description.']);
    }
    this.#hasReplaced = text.includes(REPLACED);
    this.#lines = text.replace(MARK, '').split('\n');
    if (this.#lines.at(-1) === '') this.#lines = this.#lines.slice(0, -1);
  }

  /** The last physical line read; 0 before the first. */
  get line(): number {
    return this.#next;
  }

  /** Whether the text is a script with an interpreter line. */
  get isScript(): boolean {
    return this.#lines[0]?.startsWith('#!') ?? false;
  }

  get atEnd(): boolean {
    return this.#next >= this.#lines.length;
  }

  next(): Line | undefined {
    if (this.atEnd) return undefined;
    const line = this.#next + 1;
    let text = trim(this.#take());
    this.#refuseLong(text.length, line);
    if (text.startsWith('#')) return { text: text.replace(/\\$/, ''), line };
    const parts: string[] = [];
    for (let length = text.length; text.endsWith('\\') && !this.atEnd; ) {
      const more = this.#takeContinuation();
      const added = more.startsWith('#') ? '\\' : more;
      length += added.length;
      this.#refuseLong(length, line);
      parts.push(text.slice(0, -1));
      text = added;
      // After an empty line, the part before it counts: it still ends in a backslash if its line ended in two.
      while (text === '' && parts.length > 0) text = parts.pop() ?? '';
    }
    text = parts.join('') + text;
    if (this.#hasReplaced) refuseReplaced(text, { file: this.file, line });
    return { text: trimEnd(text.replace(/\\$/, '')), line };
  }

  #refuseLong(length: number, line: number): void {
    if (length <= LONGEST) return;
    const most = LONGEST / 2 ** 20;
    throw badInput(
      { file: this.file, line },
      `the line has ${Math.ceil(length / 2 ** 20)} million characters, more than ${most}`,
      ['Put long text into a file, and name that file in transfer_input_files.'],
    );
  }

  #take(): string {
    return this.#lines[this.#next++] ?? '';
  }

  #takeContinuation(): string {
    const more = trimStart(trimEnd(this.#take()));
    if (more.startsWith('#') && !more.endsWith('\\')) {
      throw badInput({ file: this.file, line: this.#next }, 'there is a comment between continued lines', [
        'Move the comment above the statement, or end it with a backslash too.',
      ]);
    }
    return more;
  }
}
