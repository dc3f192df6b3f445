import { GryphusError } from '../errors.ts';
import { shellQuote } from '../util/shell-quote.ts';

/** A file name with placeholders like those of a command. */
export class MapName {
  readonly #pieces: readonly (string | Place)[];

  constructor(name: string) {
    this.#pieces = split(name);
  }

  get hasPlaces(): boolean {
    return this.#pieces.some((piece) => typeof piece !== 'string');
  }

  /** The file name for this task; `number`: counts from 1. */
  of(inputs: readonly string[], number: number): string {
    return filled(this.#pieces, inputs, number, (text) => text, ' ');
  }
}

/** A command with placeholders for the inputs of a task, in GNU parallel's syntax. */
export class MapCommandLine {
  readonly #pieces: readonly (string | Place)[];

  constructor(command: string) {
    const pieces = split(command);
    // Without a placeholder, the inputs follow the command.
    this.#pieces = pieces.some((piece) => typeof piece !== 'string' && piece.what !== '#')
      ? pieces
      : [...pieces, ' ', { list: undefined, what: '' }];
  }

  /** The shell command line for this task; `number`: counts from 1. */
  line(inputs: readonly string[], number: number): string {
    return filled(this.#pieces, inputs, number, shellQuote, ' ');
  }

  /** Like `line`, for a command whose words a shell would not change. */
  words(inputs: readonly string[], number: number): string[] {
    // NUL separates the words, because inputs may contain blanks.
    return filled(this.#pieces, inputs, number, (text) => text, NUL).split(NUL);
  }
}

function filled(
  pieces: readonly (string | Place)[],
  inputs: readonly string[],
  number: number,
  quote: (text: string) => string,
  space: string,
): string {
  const fill = ({ list, what }: Place): string => {
    if (what === '#') return String(number);
    const of = list === undefined ? inputs : [inputOf(inputs, list)];
    return of.map((input) => quote(PARTS[what](input))).join(space);
  };
  return pieces
    .map((piece) => {
      if (typeof piece !== 'string') return fill(piece);
      return space === ' ' ? piece : piece.replaceAll(/[ \t]+/g, space);
    })
    .join('');
}

const NUL = '\0';

type What = '' | '.' | '/' | '//' | '/.' | '#';

/** `list`: counts from 1; `undefined`: all. */
interface Place {
  readonly list: number | undefined;
  readonly what: What;
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

function split(command: string): (string | Place)[] {
  const pieces: (string | Place)[] = [];
  let from = 0;
  for (const found of command.matchAll(PLACE)) {
    const [text, list, part = '', number] = found;
    pieces.push(command.slice(from, found.index));
    pieces.push({ list: list === undefined ? undefined : Number(list), what: (number ?? part) as What });
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
