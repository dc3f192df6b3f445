import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, open, rename, rm, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { blocksOf } from '../util/blocks.ts';
import { EarlyFlush } from '../util/early-flush.ts';
import { type FileSide, type FileStat, fileError } from './transfer.ts';

/** A multiple of SFTP's block size. */
const CHUNK = 4 * 255 * 1024;

/** This machine's files. Names are relative to `base` or, without it, to the working directory. */
export class LocalFiles implements FileSide {
  readonly label = 'local';
  readonly #base: string | undefined;

  constructor(base?: string) {
    this.#base = base;
  }

  async stat(path: string): Promise<FileStat | undefined> {
    try {
      const found = await stat(this.#path(path), { bigint: true });
      return { size: Number(found.size), changed: `${found.mtimeNs}.${found.ino}`, isFile: found.isFile() };
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw fileError(this.label, 'read', path, thrown);
    }
  }

  async prefixHash(path: string, length: number): Promise<string> {
    const hash = createHash('sha256');
    if (length > 0) {
      for await (const chunk of createReadStream(this.#path(path), { end: length - 1, highWaterMark: CHUNK })) {
        hash.update(chunk as Buffer);
      }
    }
    return hash.digest('hex');
  }

  async *read(path: string, from: number): AsyncGenerator<Buffer> {
    try {
      const file = await open(this.#path(path), 'r');
      try {
        yield* blocksOf(file, from, CHUNK);
      } finally {
        await file.close();
      }
    } catch (thrown) {
      throw fileError(this.label, 'read', path, thrown);
    }
  }

  async write(path: string, at: number, bytes: AsyncIterable<Buffer>): Promise<void> {
    try {
      const file = await open(this.#path(path), at === 0 ? 'w' : 'r+', 0o600);
      try {
        await file.truncate(at);
        const flush = new EarlyFlush(file);
        let offset = at;
        for await (const chunk of bytes) {
          for (let done = 0; done < chunk.length; ) {
            done += (await file.write(chunk, done, chunk.length - done, offset + done)).bytesWritten;
          }
          offset += chunk.length;
          flush.wrote(chunk.length);
        }
      } finally {
        await file.close();
      }
    } catch (thrown) {
      throw fileError(this.label, 'write', path, thrown);
    }
  }

  async place(part: string, path: string, mode: number): Promise<void> {
    try {
      await chmod(this.#path(part), mode);
      await rename(this.#path(part), this.#path(path));
    } catch (thrown) {
      throw fileError(this.label, 'write', path, thrown);
    }
  }

  async remove(path: string): Promise<void> {
    await rm(this.#path(path), { force: true });
  }

  #path(path: string): string {
    return this.#base === undefined || isAbsolute(path) ? path : join(this.#base, path);
  }
}
