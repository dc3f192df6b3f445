import { createHash, type Hash } from 'node:crypto';
import { asError, type ErrorCode, GryphusError } from '../errors.ts';
import type { PutOptions } from './contract.ts';

export interface FileStat {
  /** In bytes. */
  readonly size: number;
  /** When its content changed, in the side's own units; only compared for equality. */
  readonly changed: string;
  readonly isFile: boolean;
}

/** The files on one side of a transfer. Failures are GryphusErrors that name the file and the side. */
export interface FileSide {
  readonly label: string;
  /** Undefined if there is no such file. */
  stat(path: string): Promise<FileStat | undefined>;
  /** SHA-256 (hex) of the first `length` bytes; undefined if the side cannot compute it. */
  prefixHash(path: string, length: number): Promise<string | undefined>;
  /** The bytes from an offset to the end; what was yielded is only valid until the next is asked for. */
  read(path: string, from: number): AsyncIterable<Buffer>;
  /** Creates the file (0600), truncates it to `at` bytes, and appends; resolves when everything has been written. */
  write(path: string, at: number, bytes: AsyncIterable<Buffer>, total: number): Promise<void>;
  /** Gives a finished part its mode and its name, replacing any older file. */
  place(part: string, path: string, mode: number): Promise<void>;
  remove(path: string): Promise<void>;
}

/** Below this size, an interrupted transfer starts again: checking would cost more than sending. */
const WORTH_RESUMING = 1024 * 1024;

/**
 * Copies one file between two sides, into a part next to the target that is renamed at the end. The part's name depends
 * on the source's name, size and time, and its bytes are compared by hash before more are appended, so that only the
 * same content is resumed.
 */
export function transfer(
  direction: 'put' | 'get',
  from: FileSide,
  source: string,
  to: FileSide,
  target: string,
  options: PutOptions = {},
): Promise<void> {
  // Two concurrent writers of one part would truncate each other's data.
  const key = JSON.stringify([to.label, target]);
  const before = underWay.get(key) ?? Promise.resolve();
  const copied = before.catch(() => undefined).then(() => copy(direction, from, source, to, target, options));
  underWay.set(key, copied);
  const leave = (): void => {
    if (underWay.get(key) === copied) underWay.delete(key);
  };
  copied.then(leave, leave);
  return copied;
}

const underWay = new Map<string, Promise<void>>();

async function copy(
  direction: 'put' | 'get',
  from: FileSide,
  source: string,
  to: FileSide,
  target: string,
  options: PutOptions,
): Promise<void> {
  const found = await from.stat(source);
  if (found === undefined) {
    const code = direction === 'put' ? 'input-missing' : 'output-missing';
    throw new GryphusError(code, `There is no file ${source} on ${from.label}.`);
  }
  if (!found.isFile) throw new GryphusError('bad-input', `${source} on ${from.label} is not a regular file.`);
  const part = partName(target, [from.label, source, String(found.size), found.changed]);
  const start = found.size < WORTH_RESUMING ? 0 : await resumableBytes(from, source, found.size, to, part);
  const hash = options.onDigest && start === 0 ? createHash('sha256') : undefined;
  const bytes = watched(from.read(source, start), start, found.size, hash, {
    ...options,
    what: `${source} of ${from.label}`,
  });
  try {
    await to.write(part, start, bytes, found.size);
    const after = await from.stat(source);
    if (after?.size !== found.size || after.changed !== found.changed) {
      throw new GryphusError('protocol-error', `${source} on ${from.label} changed while it was copied.`);
    }
    await to.place(part, target, options.mode ?? 0o600);
    if (hash) options.onDigest?.(hash.digest('hex'));
  } catch (thrown) {
    // A part is only kept for a transfer that may be resumed.
    const code = thrown instanceof GryphusError ? thrown.code : 'internal';
    if (!RESUMABLE.has(code)) await to.remove(part).catch(() => undefined);
    throw thrown;
  }
}

const RESUMABLE: ReadonlySet<ErrorCode> = new Set(['site-unreachable', 'site-busy', 'interrupted', 'timeout']);

async function resumableBytes(
  from: FileSide,
  source: string,
  size: number,
  to: FileSide,
  part: string,
): Promise<number> {
  const begun = await to.stat(part);
  if (begun === undefined || begun.size === 0 || begun.size > size) return 0;
  const [theirs, ours] = await Promise.all([to.prefixHash(part, begun.size), from.prefixHash(source, begun.size)]);
  return theirs !== undefined && theirs === ours ? begun.size : 0;
}

/** Counts the bytes that pass, stops on abort, and fails if the source yields fewer or more bytes than its size. */
async function* watched(
  bytes: AsyncIterable<Buffer>,
  start: number,
  total: number,
  hash: Hash | undefined,
  options: PutOptions & { readonly what: string },
): AsyncGenerator<Buffer> {
  let done = start;
  options.onProgress?.(done, total);
  for await (const chunk of bytes) {
    if (options.signal?.aborted) throw new GryphusError('interrupted', `Copying ${options.what} was cancelled.`);
    done += chunk.length;
    // A file that grows, or a site that sends without end, must not fill the disk.
    if (done > total) {
      throw new GryphusError('protocol-error', `${options.what} had ${total} bytes, and more came.`);
    }
    hash?.update(chunk);
    yield chunk;
    options.onProgress?.(done, total);
  }
  if (options.signal?.aborted) throw new GryphusError('interrupted', `Copying ${options.what} was cancelled.`);
  if (done !== total) {
    throw new GryphusError('protocol-error', `${options.what} had ${total} bytes, but ${done} arrived.`);
  }
}

/** A unique name next to the target; short, because the target's name may already have the maximum of 255 bytes. */
function partName(target: string, identity: readonly string[]): string {
  const slash = target.lastIndexOf('/');
  const hash = createHash('sha256').update(JSON.stringify([target.slice(slash + 1), ...identity]));
  return `${target.slice(0, slash + 1)}.gryphus-${hash.digest('hex').slice(0, 32)}.part`;
}

/** Turns a failed file operation into a GryphusError, judging by its POSIX error name or message. */
export function fileError(side: string, doing: string, path: string, thrown: unknown): GryphusError {
  if (thrown instanceof GryphusError) return thrown;
  const cause = asError(thrown);
  const text = `${(cause as NodeJS.ErrnoException).code ?? ''} ${cause.message}`;
  const sentence = `Cannot ${doing} ${path} on ${side}: ${cause.message}.`;
  if (/ENOSPC|EDQUOT|No space left|quota exceeded/i.test(text)) {
    return new GryphusError('disk-full', sentence, { cause, suggestions: [`Free some space on ${side}.`] });
  }
  if (doing === 'read')
    return new GryphusError(side === 'local' ? 'input-missing' : 'output-missing', sentence, { cause });
  return new GryphusError(side === 'local' ? 'output-unwritable' : 'site-refused', sentence, { cause });
}
