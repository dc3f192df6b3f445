import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { asError, GryphusError } from '../errors.ts';
import { shellQuote } from './shell-quote.ts';

/** The most that a secret file may hold, in bytes; nothing that we read as one is near it. */
const LARGEST = 1 << 20;

/**
 * The bytes of a file with a secret: an ordinary file, ours (or root's), closed to others. What is checked is what is
 * read (one descriptor). The caller wipes the buffer when it is done. Errors: 'not-found', 'not-permitted' with the
 * chmod to type, 'credential-invalid'.
 */
export function readSecretFile(path: string, what = 'file'): Buffer {
  const fd = open(path, what);
  try {
    const found = fstatSync(fd);
    const uid = process.getuid?.();
    if (!found.isFile()) throw new GryphusError('credential-invalid', `The ${what} ${path} is not an ordinary file.`);
    if (uid !== undefined && found.uid !== uid && found.uid !== 0) {
      throw new GryphusError('not-permitted', `The ${what} ${path} belongs to another user (uid ${found.uid}).`);
    }
    if ((found.mode & 0o077) !== 0) {
      const mode = (found.mode & 0o7777).toString(8).padStart(4, '0');
      throw new GryphusError('not-permitted', `Others can use the ${what} ${path} (mode ${mode}), so it is refused.`, {
        suggestions: [`Close it: chmod 600 ${shellQuote(path)}`],
      });
    }
    if (found.size > LARGEST) throw new GryphusError('credential-invalid', `The ${what} ${path} is larger than 1 MiB.`);
    return readWhole(fd, found.size);
  } finally {
    closeSync(fd);
  }
}

function open(path: string, what: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (thrown) {
    const cause = asError(thrown);
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === 'ENOENT') throw new GryphusError('not-found', `There is no ${what} ${path}.`, { cause });
    throw new GryphusError('not-permitted', `The ${what} ${path} cannot be opened (${code ?? cause.message}).`, {
      cause,
    });
  }
}

function readWhole(fd: number, size: number): Buffer {
  const buffer = Buffer.alloc(size);
  let done = 0;
  while (done < size) {
    const got = readSync(fd, buffer, done, size - done, done);
    if (got === 0) break;
    done += got;
  }
  return buffer.subarray(0, done);
}

/** Overwrites secrets in memory; copies that the runtime made are beyond reach. */
export function wipe(...buffers: readonly (Uint8Array | undefined)[]): void {
  for (const buffer of buffers) buffer?.fill(0);
}

/** The first line, without its end, as a copy; the whole buffer is wiped. */
export function takeFirstLine(buffer: Buffer): Buffer {
  const end = buffer.findIndex((byte) => byte === 10 || byte === 13);
  const line = Buffer.from(end === -1 ? buffer : buffer.subarray(0, end));
  wipe(buffer);
  return line;
}
