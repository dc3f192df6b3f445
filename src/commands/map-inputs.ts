import { createReadStream } from 'node:fs';
import { GryphusError } from '../errors.ts';
import { reasonOf } from '../util/plain-text.ts';

/** One list of inputs: words, or the contents of files one after the other. */
export interface InputList {
  readonly from: 'words' | 'files';
  readonly words: readonly string[];
  /** Pairs its inputs one by one with those of the list before it; otherwise each is combined with each. */
  readonly linked: boolean;
  /** It begins again until the longest of the lists that it is paired with has ended. */
  readonly again?: true;
}

/** Where the inputs of a map come from; `at`: where the command's own words end. */
export interface InputWords {
  readonly at: number;
  readonly lists: readonly InputList[];
}

export interface ReadOptions {
  /** The byte with which each input that is read ends: that of a newline, mostly. */
  readonly end: number;
  /** What separates several inputs on one line. */
  readonly columns?: RegExp | undefined;
}

const NEWLINE = 10;
const MARK = /^(:::|::::)(\+?)$/;

/** GNU parallel's `:::`, `::::`, `:::+` and `::::+`; without any, standard input. */
export function inputWords(argv: readonly string[]): InputWords {
  const marks = argv.flatMap((word, at) => (MARK.test(word) ? [at] : []));
  const lists = marks.map((at, i): InputList => {
    const [mark = '', dots, plus] = MARK.exec(argv[at] ?? '') ?? [];
    const words = argv.slice(at + 1, marks[i + 1]);
    const from = dots === ':::' ? 'words' : 'files';
    if (from === 'files' && words.length === 0)
      throw new GryphusError('usage', `${mark} must be followed by a file of inputs.`);
    if (plus === '+' && i === 0) throw new GryphusError('usage', `${mark} has no list before it to pair with.`);
    return { from, words, linked: plus === '+' };
  });
  if (lists.length === 0) return { at: argv.length, lists: [{ from: 'files', words: ['-'], linked: false }] };
  if (lists.filter(({ from, words }) => from === 'files' && words.includes('-')).length > 1)
    throw new GryphusError('usage', 'Standard input can supply only one list of inputs.');
  return { at: marks[0] ?? argv.length, lists };
}

/** In place, by Fisher's and Yates's way. */
export function shuffle(all: unknown[]): void {
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [all[i], all[j]] = [all[j], all[i]];
  }
}

/** With the files of `-a`: each is a list, before those that are typed. */
export function withFiles({ at, lists }: InputWords, files: readonly string[] = []): InputWords {
  if (files.length === 0) return { at, lists };
  const before = files.map((file): InputList => ({ from: 'files', words: [file], linked: false }));
  const implied = lists.length === 1 && lists[0]?.words.join() === '-' && lists[0].from === 'files';
  return { at, lists: implied ? before : [...before, ...lists] };
}

/** All lists paired, as by `:::+`; but the shorter ones begin again until the longest has ended. */
export function linked({ at, lists }: InputWords): InputWords {
  return { at, lists: lists.map((list, i) => ({ ...list, linked: i > 0, again: true })) };
}

/** The inputs of each task, one from each list: all combinations, the last list varying fastest. */
export function inputsOf(words: InputWords, options: ReadOptions): AsyncGenerator<readonly string[]> {
  return combinations(words, readers(words, options));
}

/** Like `inputsOf`, where the first input of each list is the name of its inputs, or has those of its columns. */
export async function namedInputs(
  words: InputWords,
  options: ReadOptions,
): Promise<{ readonly names: readonly string[]; readonly inputs: AsyncGenerator<readonly string[]> }> {
  const open = readers(words, options);
  const names: string[] = [];
  for (const reader of open.values()) {
    const { done, value } = await reader.next();
    if (done)
      throw new GryphusError('usage', '--header : takes the first line of each list of inputs, and one has none.');
    names.push(...value);
  }
  return { names: names.map((name) => name.replace(/^\uFEFF/, '')), inputs: combinations(words, open) };
}

/** Joins the inputs of so many tasks into one; 0: tasks have none. */
export async function* grouped(
  inputs: AsyncIterable<readonly string[]>,
  size: number,
): AsyncGenerator<readonly string[]> {
  let group: string[] = [];
  for await (const row of inputs) {
    if (size > 0) group.push(...row);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

/** The most characters of a task's inputs on one command line, well below the kernel's limit for an argument. */
const LINE = 100_000;

/** As many inputs for each task as a line takes, but spread evenly over so many tasks at once, as GNU parallel does. */
export async function* packed(
  inputs: AsyncIterable<readonly string[]>,
  slots: number,
): AsyncGenerator<readonly string[]> {
  const all = (await allOf(inputs)).flat();
  const share = Math.max(1, Math.ceil(all.length / Math.max(1, slots)));
  let some: string[] = [];
  let size = 0;
  for (const input of all) {
    if (some.length > 0 && (some.length === share || size + input.length > LINE)) {
      yield some;
      some = [];
      size = 0;
    }
    some.push(input);
    size += input.length + 3;
  }
  if (some.length > 0) yield some;
}

const BLANKS = { n: /(?!)/g, l: /^\s+/g, r: /\s+$/g, lr: /^\s+|\s+$/g, rl: /^\s+|\s+$/g } as const;

/** Without the blanks at their ends. */
export async function* trimmed(
  inputs: AsyncIterable<readonly string[]>,
  where: keyof typeof BLANKS,
): AsyncGenerator<readonly string[]> {
  for await (const row of inputs) yield row.map((input) => input.replaceAll(BLANKS[where], ''));
}

type Readers = ReadonlyMap<InputList, AsyncGenerator<readonly string[]>>;

function readers({ lists }: InputWords, options: ReadOptions): Readers {
  return new Map(lists.map((list) => [list, inputs(list, options)]));
}

async function* combinations({ lists }: InputWords, open: Readers): AsyncGenerator<readonly string[]> {
  const groups: InputList[][] = [];
  for (const list of lists) {
    if (list.linked) groups.at(-1)?.push(list);
    else groups.push([list]);
  }
  const [first = [], ...others] = groups;
  // The first group is read as tasks are needed; the others are needed again and again.
  const kept: (readonly string[])[][] = [];
  for (const group of others) kept.push(await allOf(rows(group, open)));
  for await (const row of rows(first, open)) yield* combined(row, kept);
}

export async function allOf<T>(given: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of given) all.push(one);
  return all;
}

function* combined(
  row: readonly string[],
  rest: readonly (readonly (readonly string[])[])[],
): Generator<readonly string[]> {
  const [next, ...others] = rest;
  if (!next) return void (yield row);
  for (const one of next) yield* combined([...row, ...one], others);
}

/** Reads paired lists together, up to the end of the shortest, unless they begin again. */
async function* rows(group: readonly InputList[], open: Readers): AsyncGenerator<readonly string[]> {
  const readers = group.flatMap((list) => open.get(list) ?? []);
  if (group[0]?.again) {
    const all: (readonly string[])[][] = [];
    for (const reader of readers) all.push(await allOf(reader));
    if (all.some((list) => list.length === 0)) return;
    const longest = all.reduce((most, { length }) => Math.max(most, length), 0);
    for (let i = 0; i < longest; i++) yield all.flatMap((list) => list[i % list.length] ?? []);
    return;
  }
  try {
    for (;;) {
      const row: string[] = [];
      for (const reader of readers) {
        const { done, value } = await reader.next();
        if (done) return;
        row.push(...value);
      }
      yield row;
    }
  } finally {
    for (const reader of readers) await reader.return(undefined);
  }
}

async function* inputs({ from, words }: InputList, { end, columns }: ReadOptions): AsyncGenerator<readonly string[]> {
  const split = (text: string): readonly string[] => (columns === undefined ? [text] : text.split(columns));
  if (from === 'words') {
    for (const word of words) yield split(word);
    return;
  }
  for (const file of words) {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    let n = 0;
    for await (const piece of pieces(file, end)) {
      n++;
      let input: string;
      try {
        input = text.decode(piece);
      } catch (cause) {
        if (!(cause instanceof TypeError)) throw cause;
        throw new GryphusError('bad-input', `Input ${n} of ${name(file)} is not UTF-8.`, { cause });
      }
      if (input.includes('\0'))
        throw new GryphusError('bad-input', `Input ${n} of ${name(file)} has a NUL byte.`, {
          suggestions: ['Say --null (-0) if the inputs end with NUL bytes, as those of find -print0.'],
        });
      yield split(input);
    }
  }
}

async function* pieces(file: string, end: number): AsyncGenerator<Buffer> {
  if (file === '-' && process.stdin.isTTY)
    process.stderr.write('gryphus: reading inputs from the terminal, one per line; end with Ctrl-D.\n');
  const stream = file === '-' ? process.stdin : createReadStream(file);
  const held: Buffer[] = [];
  const whole = (last: Buffer) => {
    const piece = Buffer.concat([...held.splice(0), last]);
    return end === NEWLINE && piece.at(-1) === 13 ? piece.subarray(0, -1) : piece;
  };
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      let from = 0;
      for (let to = chunk.indexOf(end); to >= 0; to = chunk.indexOf(end, from)) {
        yield whole(chunk.subarray(from, to));
        from = to + 1;
      }
      if (from < chunk.length) held.push(chunk.subarray(from));
    }
  } catch (cause) {
    throw new GryphusError('input-missing', `Cannot read ${name(file)}: ${reasonOf(cause)}.`, { cause });
  }
  if (held.length > 0) yield whole(Buffer.alloc(0));
}

function name(file: string): string {
  return file === '-' ? 'standard input' : JSON.stringify(file);
}
