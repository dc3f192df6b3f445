import { createWriteStream, type WriteStream } from 'node:fs';
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { GryphusError } from '../../errors.ts';
import { namesFlushed } from '../../util/names-flushed.ts';
import { keepFloor } from '../disk-floor.ts';
import { unplaceable } from '../place.ts';

/** How often the size, and the free space of this disk, are checked while content arrives, in milliseconds. */
const LOOK_MS = 100;

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

  /**
   * Writes after `start`, up to `most` bytes in all (without it, as many as come); once this settles nothing more is
   * written, whether or not `fill` succeeded. 'disk-full' if this disk gets nearly full, 'url-unreachable' if more
   * comes.
   */
  async write(start: number, fill: (file: WriteStream) => Promise<unknown>, most = Number.POSITIVE_INFINITY) {
    const file = createWriteStream(this.path, { flags: start === 0 ? 'w' : 'a', mode: 0o600 });
    let error: GryphusError | undefined;
    const giveUp = (why: GryphusError): void => {
      error ??= why;
      file.destroy(why);
    };
    const look = async (): Promise<void> => {
      if (start + file.bytesWritten > most)
        giveUp(new GryphusError('url-unreachable', `${most} bytes were announced, and more came.`));
      await keepFloor(dirname(this.path)).catch((thrown: unknown) => giveUp(unplaceable(this.path, thrown)));
    };
    const timer = setInterval(() => void look(), LOOK_MS);
    try {
      await look();
      await fill(file);
    } catch (thrown) {
      const why = error ?? thrown;
      // The space is needed for others.
      if (isFull(why)) await this.drop();
      throw why;
    } finally {
      clearInterval(timer);
      file.on('error', () => undefined);
      file.destroy();
      if (!file.closed) await new Promise<void>((resolve) => file.once('close', () => resolve()));
    }
  }

  /** The part is complete: gives it its final name, which is on disk when this resolves. */
  async finish(): Promise<void> {
    const file = await open(this.path, 'a', 0o600);
    try {
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(this.path, this.#to).catch(this.#unwritable);
    await namesFlushed(dirname(this.#to)).catch(this.#unwritable);
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

function isFull(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && ['disk-full', 'ENOSPC', 'EDQUOT'].includes(String(thrown.code));
}
