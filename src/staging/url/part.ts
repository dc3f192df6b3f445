import { createWriteStream, type WriteStream } from 'node:fs';
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { unplaceable } from '../place.ts';

/** A file on its way here: `<to>.part`, and next to it the version of the content that it belongs to. */
export class Part {
  readonly path: string;
  readonly #to: string;
  readonly #of: string;

  constructor(to: string) {
    this.#to = to;
    this.path = `${to}.part`;
    this.#of = `${to}.part-of`;
  }

  /** The number of bytes here of this version; a part of another version is deleted. */
  async begin(version: string | undefined): Promise<number> {
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 });
    const here = await this.here();
    if (here !== undefined && here.version === version) return here.bytes;
    await this.drop();
    if (version !== undefined) await writeFile(this.#of, version, { mode: 0o600 }).catch(this.#unwritable);
    return 0;
  }

  async here(): Promise<{ readonly version: string; readonly bytes: number } | undefined> {
    const version = await readFile(this.#of, 'utf8').catch(() => undefined);
    const bytes = await stat(this.path).catch(() => undefined);
    return version === undefined || !bytes ? undefined : { version, bytes: bytes.size };
  }

  /** Writes after `start`; once this settles nothing more is written, whether or not `fill` succeeded. */
  async write(start: number, fill: (file: WriteStream) => Promise<unknown>): Promise<void> {
    const file = createWriteStream(this.path, { flags: start === 0 ? 'w' : 'a', mode: 0o600 });
    try {
      await fill(file);
    } finally {
      file.on('error', () => undefined);
      file.destroy();
      if (!file.closed) await new Promise<void>((resolve) => file.once('close', () => resolve()));
    }
  }

  /** The part is complete: gives it its final name. */
  async finish(): Promise<void> {
    const file = await open(this.path, 'a', 0o600);
    try {
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(this.path, this.#to).catch(this.#unwritable);
    await rm(this.#of, { force: true });
  }

  async drop(): Promise<void> {
    await rm(this.path, { force: true });
    await rm(this.#of, { force: true });
  }

  readonly #unwritable = (thrown: unknown): never => {
    throw unplaceable(this.path, thrown);
  };
}
