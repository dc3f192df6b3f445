import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readSync, statSync } from 'node:fs';

/** Why a text was not read, in words for the user; system errors are passed on unchanged. */
export class UnreadableText extends Error {
  override readonly name = 'UnreadableText';
}

/** The most bytes of a submit description, an included file, a list of items or a command's output. */
export const MOST_TEXT = 2 ** 28;

/** How long a FIFO, a socket or a device may take to end. */
const PATIENCE_MS = 60_000;
const PIECE = 2 ** 20;
const MB = 2 ** 20;

/**
 * The text of a file of at most `most` bytes. Anything but a regular file (a FIFO, the shell's `<(command)`, a device)
 * is read by a separate process, which Ctrl-C or a time-out after a minute can end if no data comes. Throws an
 * UnreadableText, or the system's error.
 */
export function boundedText(path: string, most: number, patienceMs = PATIENCE_MS): string {
  const stat = statSync(path);
  if (!stat.isFile() && !stat.isDirectory()) return pipedText(path, most, patienceMs);
  const fd = openSync(path, 'r');
  try {
    return readText(fd, most, path);
  } finally {
    closeSync(fd);
  }
}

/** The same for an open file, up to its end. */
export function readText(fd: number, most: number, name: string): string {
  const pieces: Buffer[] = [];
  for (let size = 0; ; ) {
    const piece = Buffer.allocUnsafe(PIECE);
    const read = readSync(fd, piece, 0, PIECE, null);
    if (read === 0) return Buffer.concat(pieces).toString('utf8');
    size += read;
    if (size > most) throw tooLong(name, most);
    pieces.push(piece.subarray(0, read));
  }
}

export function tooLong(name: string, most: number): UnreadableText {
  return new UnreadableText(`${name} is larger than ${Math.floor(most / MB)} MB, or endless`);
}

function pipedText(path: string, most: number, patienceMs: number): string {
  const { stdout, error, signal, status } = spawnSync('head', ['-c', String(most + 1), '--', path], {
    timeout: patienceMs,
    killSignal: 'SIGKILL',
    maxBuffer: most + PIECE,
    stdio: ['inherit', 'pipe', 'ignore'],
  });
  if (error !== undefined && 'code' in error && error.code === 'ETIMEDOUT') {
    throw new UnreadableText(`${path} is not a regular file, and did not end within ${Math.ceil(patienceMs / 1000)} s`);
  }
  if (error) throw error;
  if (signal !== null || status !== 0) throw new UnreadableText(`${path} could not be read`);
  if (stdout.length > most) throw tooLong(path, most);
  return stdout.toString('utf8');
}
