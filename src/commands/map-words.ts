import { GryphusError } from '../errors.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { isNumber, partOf, type Place, split, type Style } from './map-places.ts';

/** A file name with placeholders like those of a command. */
export class MapName {
  readonly #pieces: readonly (string | Place)[];
  readonly #total: number | undefined;

  constructor(name: string, style: Style = ONE) {
    this.#pieces = split(name, style);
    this.#total = style.total;
  }

  get hasPlaces(): boolean {
    return this.#pieces.some((piece) => typeof piece !== 'string');
  }

  /** The file name for this task. */
  of(inputs: readonly string[], turn: Turn): string {
    return filled(this.#pieces, { inputs, ...turn, total: this.#total }, (text) => text);
  }
}

/** Numbers of a task, from 1: its own, and that of a place that no other task has while it runs. */
export interface Turn {
  readonly number: number;
  readonly slot: number;
}

/** What placeholders are filled with. */
interface Filling extends Turn {
  readonly inputs: readonly string[];
  readonly total: number | undefined;
}

const ONE: Style = { size: 1 };

/** Writes `{name}`, `{name.}` and so on as `{1}`, `{1.}`. */
export function unnamed(text: string, names: readonly string[]): string {
  const known = names.filter((name) => name !== '').map((name) => name.replaceAll(/[^\p{L}\p{N}_\s]/gu, '\\$&'));
  if (known.length === 0) return text;
  const place = new RegExp(`(?<!\\$)\\{(${known.join('|')})(\\.|//|/\\.|/)?\\}`, 'g');
  return text.replaceAll(place, (_, name: string, part: string = '') => `{${names.indexOf(name) + 1}${part}}`);
}

/** A command with placeholders for the inputs of a task, in GNU parallel's syntax. */
export class MapCommandLine {
  readonly #pieces: readonly (string | Place)[];
  readonly #style: Style;

  constructor(command: string, style: Style = ONE) {
    this.#style = style;
    const pieces = split(command, style);
    // Without a placeholder, the inputs follow the command.
    this.#pieces =
      style.size === 0 || pieces.some((piece) => typeof piece !== 'string')
        ? pieces
        : [...pieces, ' ', { written: '{}', list: undefined, what: '', optional: false }];
  }

  /** The shell command line for this task. */
  line(inputs: readonly string[], turn: Turn): string {
    const given = { inputs, ...turn, total: this.#style.total };
    if (!this.#style.context) return filled(this.#pieces, given, shellQuote);
    return wordsIn(this.#pieces)
      .map((word) =>
        word.some((piece) => typeof piece !== 'string' && piece.list === undefined && !isNumber(piece.what))
          ? inputs.map((input) => filled(word, { ...given, inputs: [input] }, shellQuote)).join(' ')
          : filled(word, given, shellQuote),
      )
      .join('');
  }

  /** Like `line`, for a command whose words a shell would not change. */
  words(inputs: readonly string[], turn: Turn): string[] {
    const given = { inputs, ...turn, total: this.#style.total };
    const words: string[] = [];
    let word: string | undefined;
    const end = () => {
      if (word !== undefined) words.push(word);
      word = undefined;
    };
    for (const piece of this.#pieces) {
      const parts = typeof piece === 'string' ? piece.split(/[ \t]+/) : textsOf(piece, given);
      for (const [i, part] of parts.entries()) {
        if (i > 0) end();
        // Blanks make no word, but an empty input does.
        if (part !== '' || typeof piece !== 'string') word = `${word ?? ''}${part}`;
      }
    }
    end();
    return words;
  }
}

/** Pieces from blank to blank, where the blanks are pieces too. */
function wordsIn(pieces: readonly (string | Place)[]): (string | Place)[][] {
  const words: (string | Place)[][] = [[]];
  for (const piece of pieces) {
    if (typeof piece !== 'string') words.at(-1)?.push(piece);
    else
      for (const part of piece.split(/(\s+)/)) {
        if (/^\s+$/.test(part)) words.push([part], []);
        else words.at(-1)?.push(part);
      }
  }
  return words;
}

/** What a placeholder stands for: several words, or none. */
function textsOf({ list, what, optional }: Place, { inputs, number, slot, total }: Filling): string[] {
  if (isNumber(what)) return [String({ '#': number, '%': slot, '##': total ?? 0 }[what])];
  if (optional && list !== undefined && inputs[list - 1] === undefined) return [];
  return (list === undefined ? inputs : [inputOf(inputs, list)]).map((input) => partOf(what, input));
}

function filled(pieces: readonly (string | Place)[], given: Filling, quote: (text: string) => string): string {
  return pieces
    .map((piece) => (typeof piece === 'string' ? piece : textsOf(piece, given).map(quote).join(' ')))
    .join('');
}

/** Words as a shell reads them back, with their placeholders (-q). */
export function quotedCommand(words: readonly string[], style: Style): string {
  return words
    .map((word) =>
      split(word, style)
        .map((piece) => (typeof piece === 'string' ? (piece === '' ? '' : shellQuote(piece)) : piece.written))
        .join(''),
    )
    .map((word) => word || "''")
    .join(' ');
}

function inputOf(inputs: readonly string[], list: number): string {
  const input = inputs[list - 1];
  if (input !== undefined) return input;
  const count = inputs.length === 1 ? '1 input' : `${inputs.length} inputs`;
  throw new GryphusError('usage', `The command uses {${list}}, but a task has ${count}.`, {
    suggestions: ['Lists of inputs each begin with ::: or ::::; --colsep splits lines into columns.'],
  });
}
