import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GryphusError } from '../errors.ts';
import { shellQuote } from '../util/shell-quote.ts';
import type { InputWords } from './map-inputs.ts';
import type { Style } from './map-places.ts';
import type { Plan } from './map-plan.ts';
import { MapCommandLine } from './map-words.ts';

interface PipeFlags {
  readonly pipe: boolean;
  readonly block?: string | undefined;
  readonly recend?: string | undefined;
  readonly recstart?: string | undefined;
  readonly 'max-replace-args'?: number | undefined;
  readonly 'max-args'?: number | undefined;
}

/** How a stream is cut into blocks, as GNU parallel's `--pipe` does. */
export interface Cut {
  /** Bytes; a block ends with the last whole record before, or with the first record if that is longer. */
  readonly size: number;
  /** Instead of a size: records of a block. */
  readonly records?: number;
  /** What is between two records, and how much of it belongs to the second. */
  readonly between: Buffer;
  readonly ofNext: number;
}

const UNITS: Readonly<Record<string, number>> = { '': 1, k: 1000, m: 1e6, g: 1e9, K: 1024, M: 1024 ** 2, G: 1024 ** 3 };

/** `undefined` without --pipe. Throws GryphusError 'usage' for options that do not go together. */
export function cutOf(flags: PipeFlags, { lists }: InputWords): Cut | undefined {
  const { pipe, block, recend, recstart } = flags;
  const of = Object.entries({ block, recend, recstart }).find(([, value]) => value !== undefined);
  if (!pipe) {
    if (of !== undefined) throw new GryphusError('usage', `--${of[0]} is about --pipe, which is not given.`);
    return undefined;
  }
  if (lists.length !== 1 || lists[0]?.words.join() !== '-')
    throw new GryphusError('usage', '--pipe gives the tasks standard input, so there can be no list of inputs.', {
      suggestions: ['Leave out --pipe, or the lists after ::: and ::::.'],
    });
  const [, digits, unit = ''] = /^(\d+)([kmgKMG]?)$/.exec(block ?? '1M') ?? [];
  const size = Number(digits) * (UNITS[unit] ?? 1);
  if (digits === undefined || size < 1 || size > 2 ** 30)
    throw new GryphusError('usage', `--block cannot be ${JSON.stringify(block)}.`, {
      suggestions: ['Give bytes, up to 1G: --block 10M'],
    });
  const start = escaped(recstart ?? '');
  const end = escaped(recend ?? (recstart === undefined ? '\n' : ''));
  const records = flags['max-replace-args'] ?? flags['max-args'];
  if (records === 0) throw new GryphusError('usage', '-N 0 would give the tasks nothing of standard input.');
  if (start.length + end.length === 0)
    throw new GryphusError('usage', '--recend and --recstart cannot both be empty: nothing would be between records.');
  return {
    size,
    ...(records === undefined ? {} : { records }),
    between: Buffer.concat([end, start]),
    ofNext: start.length,
  };
}

/** `\n`, `\t`, `\0` and so on may be written out. */
function escaped(text: string): Buffer {
  const said: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '0': '\0', '\\': '\\' };
  return Buffer.from(text.replaceAll(/\\([ntr0\\])/g, (_, letter: string) => said[letter] ?? ''));
}

/** The blocks of a stream, each of whole records; the last ends as the stream does. */
export async function* blocksOf(stream: AsyncIterable<Buffer>, cut: Cut): AsyncGenerator<Buffer> {
  let held = Buffer.alloc(0);
  let chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    size += chunk.length;
    if (cut.records === undefined && size < cut.size) continue;
    held = Buffer.concat(chunks);
    for (let end = endOf(held, cut); end > 0; end = endOf(held, cut)) {
      yield held.subarray(0, end);
      held = held.subarray(end);
    }
    chunks = [held];
    size = held.length;
  }
  held = Buffer.concat(chunks);
  if (held.length > 0) yield held;
}

/** Where the first block ends; 0: more must be read first. */
function endOf(held: Buffer, { size, records, between, ofNext }: Cut): number {
  if (records === undefined) {
    if (held.length < size) return 0;
    const fit = held.lastIndexOf(between, size - between.length + ofNext);
    const at = fit > 0 ? fit : held.indexOf(between, 1);
    return at < 0 ? 0 : at + between.length - ofNext;
  }
  let at = -1;
  for (let n = 0; n < records; n++) {
    // A record that begins with recstart does not end before it.
    at = held.indexOf(between, at < 0 ? (ofNext > 0 ? 1 : 0) : at + between.length);
    if (at < 0) return 0;
  }
  return at + between.length - ofNext;
}

/** Blocks of standard input as files, for tasks that read them; removed with the map. */
export class PipeFiles {
  readonly #dir = mkdtempSync(join(tmpdir(), 'gryphus-map-'));

  /** A row without inputs for each block; the block of task N is in its file before. */
  async *rows(stream: AsyncIterable<Buffer>, cut: Cut): AsyncGenerator<readonly string[]> {
    let number = 0;
    for await (const block of blocksOf(stream, cut)) {
      writeFileSync(this.#of(++number), block, { mode: 0o600 });
      yield [];
    }
  }

  /** The program of a task that reads its block, as `plan` has it. */
  plan(command: string, style: Style): Plan {
    const commandLine = new MapCommandLine(command, { ...style, size: 0 });
    const line: Plan['line'] = (...of) => commandLine.line(...of);
    const words: Plan['words'] = (inputs, turn) => [
      '-c',
      `exec <${shellQuote(this.#of(turn.number))}\n${line(inputs, turn)}`,
    ];
    return { executable: '/bin/sh', words, line };
  }

  forget(number: number): void {
    rmSync(this.#of(number), { force: true });
  }

  end(): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #of(number: number): string {
    return join(this.#dir, String(number));
  }
}
