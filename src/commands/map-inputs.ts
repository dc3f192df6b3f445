import { createReadStream } from 'node:fs';
import { GryphusError } from '../errors.ts';
import { reasonOf } from '../util/plain-text.ts';

/** Where the inputs of a map are: words, files of inputs, or standard input; `at`: where the command's own words end. */
export interface InputWords {
  readonly at: number;
  readonly from: 'words' | 'files';
  readonly words: readonly string[];
}

/** GNU parallel's `:::` and `::::`. */
export function inputWords(argv: readonly string[]): InputWords {
  const marks = argv.flatMap((word, i) => (word === ':::' || word === '::::' ? [i] : []));
  const [at, second] = marks;
  if (at === undefined) return { at: argv.length, from: 'files', words: ['-'] };
  if (second !== undefined)
    throw new GryphusError('usage', 'There may be one ::: or :::: only: inputs are not combined.', {
      suggestions: ['Read them from standard input, one a line.'],
    });
  const words = argv.slice(at + 1);
  if (argv[at] === ':::') return { at, from: 'words', words };
  if (words.length === 0) throw new GryphusError('usage', 'No file of inputs follows ::::.');
  return { at, from: 'files', words };
}

/** The inputs; of files, what is read when it is wanted: lines, or with `nul` what ends with a NUL byte. */
export async function* inputsOf({ from, words }: InputWords, nul: boolean): AsyncGenerator<string> {
  if (from === 'words') return yield* words;
  for (const file of words) {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    let n = 0;
    for await (const piece of pieces(file, nul)) {
      n++;
      try {
        yield text.decode(piece);
      } catch (cause) {
        if (!(cause instanceof TypeError)) throw cause;
        throw new GryphusError('bad-input', `Input ${n} of ${name(file)} is not UTF-8.`, { cause });
      }
    }
  }
}

async function* pieces(file: string, nul: boolean): AsyncGenerator<Buffer> {
  if (file === '-' && process.stdin.isTTY)
    process.stderr.write('gryphus: the inputs are read from the terminal, one a line; Ctrl-D ends them.\n');
  const stream = file === '-' ? process.stdin : createReadStream(file);
  const held: Buffer[] = [];
  const whole = (last: Buffer) => {
    const piece = Buffer.concat([...held.splice(0), last]);
    return !nul && piece.at(-1) === 13 ? piece.subarray(0, -1) : piece;
  };
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      let from = 0;
      for (let to = chunk.indexOf(nul ? 0 : 10); to >= 0; to = chunk.indexOf(nul ? 0 : 10, from)) {
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
