import { GryphusError } from '../errors.ts';
import { shellQuote } from '../util/shell-quote.ts';

/** A file name with placeholders like those of a command. */
export class MapName {
  readonly #pieces: readonly (string | Place)[];

  constructor(name: string, size = 1) {
    this.#pieces = split(name, size);
  }

  get hasPlaces(): boolean {
    return this.#pieces.some((piece) => typeof piece !== 'string');
  }

  /** The file name for this task; `number`: counts from 1. */
  of(inputs: readonly string[], number: number): string {
    return filled(this.#pieces, inputs, number, (text) => text);
  }
}

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

  /** `size`: how many inputs each task gets from its list; the last one may get fewer. */
  constructor(command: string, size = 1) {
    const pieces = split(command, size);
    // Without a placeholder, the inputs follow the command.
    this.#pieces =
      size === 0 || pieces.some((piece) => typeof piece !== 'string' && piece.what !== '#')
        ? pieces
        : [...pieces, ' ', { list: undefined, what: '', optional: false }];
  }

  /** The shell command line for this task; `number`: counts from 1. */
  line(inputs: readonly string[], number: number): string {
    return filled(this.#pieces, inputs, number, shellQuote);
  }

  /** Like `line`, for a command whose words a shell would not change. */
  words(inputs: readonly string[], number: number): string[] {
    const words: string[] = [];
    let word: string | undefined;
    const end = () => {
      if (word !== undefined) words.push(word);
      word = undefined;
    };
    for (const piece of this.#pieces) {
      const parts = typeof piece === 'string' ? piece.split(/[ \t]+/) : textsOf(piece, inputs, number);
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

/** What a placeholder stands for: several words, or none. */
function textsOf({ list, what, optional }: Place, inputs: readonly string[], number: number): string[] {
  if (what === '#') return [String(number)];
  if (optional && list !== undefined && inputs[list - 1] === undefined) return [];
  return (list === undefined ? inputs : [inputOf(inputs, list)]).map(PARTS[what]);
}

function filled(
  pieces: readonly (string | Place)[],
  inputs: readonly string[],
  number: number,
  quote: (text: string) => string,
): string {
  return pieces
    .map((piece) => (typeof piece === 'string' ? piece : textsOf(piece, inputs, number).map(quote).join(' ')))
    .join('');
}

type What = '' | '.' | '/' | '//' | '/.' | '#';

/** `list`: counts from 1; `undefined`: all. */
interface Place {
  readonly list: number | undefined;
  readonly what: What;
  /** A task may lack it: the last one of a list that is given out by twos or more. */
  readonly optional: boolean;
}

const PARTS: Readonly<Record<What, (input: string) => string>> = {
  '': (input) => input,
  '#': (input) => input,
  '.': withoutSuffix,
  '/': (input) => input.slice(input.lastIndexOf('/') + 1),
  '//': directory,
  '/.': (input) => withoutSuffix(input.slice(input.lastIndexOf('/') + 1)),
};

/** `${` belongs to the shell. */
const PLACE = /(?<!\$)\{(?:(\d+)?(\.|\/\/|\/\.|\/)?|(#))\}/g;

function split(command: string, size: number): (string | Place)[] {
  const pieces: (string | Place)[] = [];
  let from = 0;
  for (const found of command.matchAll(PLACE)) {
    const [text, list, part = '', number] = found;
    pieces.push(command.slice(from, found.index));
    const place = list === undefined ? undefined : Number(list);
    const optional = size !== 1 && place !== undefined && place <= Math.max(1, size);
    pieces.push({ list: place, what: (number ?? part) as What, optional });
    from = found.index + text.length;
  }
  return [...pieces, command.slice(from)];
}

function inputOf(inputs: readonly string[], list: number): string {
  const input = inputs[list - 1];
  if (input !== undefined) return input;
  const count = inputs.length === 1 ? '1 input' : `${inputs.length} inputs`;
  throw new GryphusError('usage', `The command uses {${list}}, but a task has ${count}.`, {
    suggestions: ['Lists of inputs each begin with ::: or ::::; --colsep splits lines into columns.'],
  });
}

function withoutSuffix(input: string): string {
  const dot = input.lastIndexOf('.');
  return dot > input.lastIndexOf('/') ? input.slice(0, dot) : input;
}

function directory(input: string): string {
  const slash = input.lastIndexOf('/');
  return slash < 0 ? '.' : slash === 0 ? '/' : input.slice(0, slash);
}
