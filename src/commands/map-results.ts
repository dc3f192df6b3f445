import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GryphusError } from '../errors.ts';
import { reasonOf } from '../util/plain-text.ts';

/** Bytes of a file name (Linux). */
const LONGEST = 255;
const DIGEST = 16;

/** GNU parallel's directory of results: the outputs of each task under the values of its inputs. */
export class ResultFiles {
  readonly #dir: string;
  readonly #names: readonly string[];

  /** `names`: of the lists, where they have some; otherwise they are numbered. */
  constructor(dir: string, names: readonly string[] = []) {
    const unfit = /\.(csv|tsv|json)$/.test(dir) ? 'a table' : dir.includes('{') ? 'a pattern' : undefined;
    if (dir === '') throw new GryphusError('usage', '--results needs the name of a directory.');
    if (unfit !== undefined)
      throw new GryphusError('usage', `--results writes a directory, and ${JSON.stringify(dir)} names ${unfit}.`, {
        suggestions: ['Name a directory; the outputs are in DIR/1/VALUE/stdout and stderr.'],
      });
    this.#dir = dir;
    this.#names = names;
  }

  /** The task has ended before. */
  has(inputs: readonly string[]): boolean {
    return existsSync(join(this.#of(inputs), 'seq'));
  }

  add(number: number, inputs: readonly string[], outputs: { readonly stdout: Buffer; readonly stderr: Buffer }): void {
    const dir = this.#of(inputs);
    try {
      mkdirSync(dir, { recursive: true });
      writeFileSync(join(dir, 'stdout'), outputs.stdout);
      writeFileSync(join(dir, 'stderr'), outputs.stderr);
      // The last one: it says that the others are complete.
      writeFileSync(join(dir, 'seq'), String(number));
    } catch (cause) {
      throw new GryphusError('output-unwritable', `Cannot write ${JSON.stringify(dir)}: ${reasonOf(cause)}.`, {
        cause,
      });
    }
  }

  #of(inputs: readonly string[]): string {
    return join(
      this.#dir,
      ...inputs.flatMap((input, i) => [fileName(this.#names[i] ?? String(i + 1)), fileName(input)]),
    );
  }
}

/** A file name for any value: a different one for each. */
export function fileName(value: string): string {
  if (value === '') return '\\';
  const name = value.replaceAll(/[\\/\t\0]/g, (one) => QUOTED[one] ?? one).replace(/^\.\.?$/, '\\$&');
  const bytes = Buffer.from(name);
  if (bytes.length <= LONGEST) return name;
  const digest = createHash('sha256').update(value).digest('hex').slice(0, DIGEST);
  const head = bytes.subarray(0, LONGEST - DIGEST - 2).toString();
  // The cut may have halved a character or an escape.
  return `${head.replace(/\uFFFD+$/, '').replace(/\\+$/, '')}\\-${digest}`;
}

/** As in GNU parallel. */
const QUOTED: Readonly<Record<string, string>> = { '\\': '\\\\', '/': '\\_', '\t': '\\t', '\0': '\\0' };
