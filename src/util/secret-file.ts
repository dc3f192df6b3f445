import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { asError, GryphusError } from '../errors.ts';
import { shellQuote } from './shell-quote.ts';

/** The largest secret file in bytes; real ones are far smaller. */
const LARGEST = 1 << 20;

/**
 * Reads a file with a secret: it must be an ordinary file, ours (or root's), and closed to others. The file that is
 * checked is the one that is read (same descriptor). The caller must wipe the buffer. Errors: 'not-found',
 * 'not-permitted' with the chmod to type, 'credential-invalid'.
 */
export function readSecretFile(path: string, what = 'file'): Buffer {
  const fd = open(path, what);
  try {
    const found = fstatSync(fd);
    const uid = process.getuid?.();
    if (!found.isFile()) throw new GryphusError('credential-invalid', `The ${what} ${path} is not a regular file.`);
    if (uid !== undefined && found.uid !== uid && found.uid !== 0) {
      throw new GryphusError('not-permitted', `The ${what} ${path} belongs to another user (uid ${found.uid}).`);
    }
    if ((found.mode & 0o077) !== 0) {
      const mode = (found.mode & 0o7777).toString(8).padStart(4, '0');
      throw new GryphusError('not-permitted', `Others can use the ${what} ${path} (mode ${mode}), so it is refused.`, {
        suggestions: [`Run: chmod 600 ${shellQuote(path)}`],
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

/** Overwrites secrets in memory; copies made by the runtime are beyond reach. */
export function wipe(...buffers: readonly (Uint8Array | undefined)[]): void {
  for (const buffer of buffers) buffer?.fill(0);
}

/** Copies the first line without its line end; wipes the whole buffer. */
export function takeFirstLine(buffer: Buffer): Buffer {
  const end = buffer.findIndex((byte) => byte === 10 || byte === 13);
  const line = Buffer.from(end === -1 ? buffer : buffer.subarray(0, end));
  wipe(buffer);
  return line;
}
