import { createWriteStream, fstatSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { GryphusError } from '../errors.ts';
import { reasonOf } from '../util/plain-text.ts';
import { flushDir, makeDirs } from '../util/private-file.ts';

/** How long a pipe may stay silent before the user is told what is being waited for, in milliseconds. */
const PATIENCE_MS = 2000;
const NAME = 'runs';

/** The streams of a job of `gryphus run`, in a private directory until they have been shown. */
export class RunFiles {
  readonly #all: string;
  #dir: string | undefined;

  constructor(stateDir: string) {
    this.#all = join(stateDir, NAME);
  }

  get stdout(): string {
    return join(this.#own(), 'stdout');
  }

  get stderr(): string {
    return join(this.#own(), 'stderr');
  }

  /**
   * Copies standard input to a file; `undefined` if there is none to pass on. `wanted`: true also reads a terminal,
   * false nothing.
   */
  async stdin(wanted: boolean | undefined): Promise<string | undefined> {
    if (wanted === false || (wanted === undefined && !hasInput())) return undefined;
    const file = join(this.#own(), 'stdin');
    const notice = setTimeout(() => {
      process.stderr.write(
        'gryphus: reading standard input to its end, for the job.\n  → Without any: --no-stdin, or </dev/null.\n',
      );
    }, PATIENCE_MS);
    try {
      await pipeline(process.stdin, createWriteStream(file, { mode: 0o600, flush: true }));
      // The job may read it after a power failure.
      for (const dir of [dirname(file), this.#all]) flushDir(dir);
    } catch (cause) {
      this.remove();
      throw new GryphusError('input-missing', `Standard input cannot be read: ${reasonOf(cause)}.`, { cause });
    } finally {
      clearTimeout(notice);
    }
    return file;
  }

  remove(): void {
    if (this.#dir !== undefined) rmSync(this.#dir, { recursive: true, force: true });
  }

  #own(): string {
    if (this.#dir === undefined) {
      makeDirs(this.#all);
      this.#dir = mkdtempSync(join(this.#all, 'r-'));
    }
    return this.#dir;
  }
}

/** Removes the files of a run by one of them; other files are left alone. */
export function removeRunFiles(stateDir: string, file: string): void {
  const dir = dirname(file);
  if (dirname(dir) === join(stateDir, NAME)) rmSync(dir, { recursive: true, force: true });
}

/** A terminal is not read unless asked for, and a device like /dev/null has nothing. */
function hasInput(): boolean {
  try {
    const stat = fstatSync(0);
    return stat.isFIFO() || stat.isFile() || stat.isSocket();
  } catch {
    // Standard input is closed.
    return false;
  }
}
