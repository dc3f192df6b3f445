import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { GryphusError } from '../errors.ts';

/** Opening a pipe without a reader, or a terminal, must not block, nor change our controlling terminal. */
const FLAGS = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
/** How long the reader of a named pipe may take to read more, in milliseconds. */
const PATIENCE_MS = 30_000;

/** Whether the path is a pipe or a device such as `/dev/null`: it is written to, not replaced. */
export async function isSpecial(path: string): Promise<boolean> {
  return isSpecialFile(path, await stat(path).catch(() => undefined));
}

/** The same of what stat(2) says of the path. */
export function isSpecialFile(path: string, seen: Stats | undefined): boolean {
  if (seen?.isDirectory())
    throw new GryphusError('output-unwritable', `${path} is a directory, so the output cannot be written there.`);
  return seen !== undefined && !seen.isFile();
}

/**
 * Writes to a pipe or a device. A pipe that nobody reads is an error ('output-unwritable'): waiting for a reader would
 * occupy one of Node's few threads for file access, which all jobs share.
 */
export async function pour(source: Readable, to: string, patienceMs = PATIENCE_MS): Promise<void> {
  try {
    if (to === '/dev/null') return;
    if ((await stat(to)).isFIFO()) await intoPipe(source, to, patienceMs);
    else await intoDevice(source, to);
  } finally {
    source.destroy();
  }
}

async function intoDevice(source: Readable, to: string): Promise<void> {
  const target = await open(to, FLAGS);
  try {
    for await (const chunk of source) await target.writeFile(chunk as Uint8Array);
  } finally {
    await target.close();
  }
}

async function intoPipe(source: Readable, to: string, patienceMs: number): Promise<void> {
  const unread = (cause?: unknown): GryphusError =>
    new GryphusError('output-unwritable', `${to} is a pipe without a reader, so the output cannot be written there.`, {
      cause,
      suggestions: ['Read from it, then `gryphus release` the job: its results wait at the site.'],
    });
  const fd = openPipe(to, unread);
  const pipe = new Socket({ fd, readable: false, writable: true });
  pipe.setTimeout(patienceMs, () => pipe.destroy(unread()));
  await pipeline(source, pipe);
}

function openPipe(path: string, unread: (cause: unknown) => GryphusError): number {
  let fd: number;
  try {
    fd = openSync(path, FLAGS);
  } catch (thrown) {
    throw thrown instanceof Error && 'code' in thrown && thrown.code === 'ENXIO' ? unread(thrown) : thrown;
  }
  if (fstatSync(fd).isFIFO()) return fd;
  closeSync(fd);
  throw new GryphusError('output-unwritable', `${path} was replaced while the output was written.`);
}
