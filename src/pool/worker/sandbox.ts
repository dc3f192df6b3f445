import { createHash, type Hash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { GryphusError } from '../../errors.ts';
import type { Blob, SiteFile } from '../../site/contract.ts';
import { sha256Of } from '../../staging/sha256.ts';
import type { AttemptPlace } from './attempt-place.ts';
import { sandboxInside } from './container-script.ts';
import { isFull } from '../host/full-disk.ts';
import { PIECE, pieces } from '../wire/pieces.ts';
import { Turns } from '../../util/turns.ts';
import type { PlacedJob } from './job-script.ts';
import type { ReusedSandbox } from './reused-sandbox.ts';
import type { RunSpec } from '../wire/wire.ts';

/** Fetches bytes of a blob from the central manager; fewer than requested at its end. */
export type Pull = (blob: Blob, offset: number, bytes: number) => Promise<Buffer>;

/** The bytes of a blob from an offset on by a connection of their own; `undefined` if there is none now. */
export type Stream = (from: number) => AsyncIterable<Buffer> | undefined;

/** How many files are pulled at once: each takes a round trip, or an open file. */
const AT_ONCE = 64;
const BLOCK = 1 << 20;
const MOST_HELD = 16 << 20;
const KEEP_MS = 7 * 86_400_000;

/** Input files by their SHA-256, each fetched once for all attempts that need it. */
export class BlobCache {
  readonly #dir: string;
  readonly #coming = new Map<string, Promise<string>>();
  readonly #turns = new Turns(() => AT_ONCE);
  /** Small files that were used recently, by SHA-256, and their size in bytes. */
  readonly #contents = new Map<string, Buffer>();
  #held = 0;

  constructor(dir: string) {
    this.#dir = dir;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(dir)) {
      const path = join(dir, name);
      const found = statSync(path, { throwIfNoEntry: false });
      if (found && (name.endsWith('.part') || Date.now() - found.mtimeMs > KEEP_MS)) rmSync(path, { force: true });
    }
  }

  /** Its path, if it is already cached. */
  here(blob: Blob): string | undefined {
    const path = join(this.#dir, blob.sha256);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.size !== blob.bytes) return undefined;
    if (Date.now() - found.mtimeMs > KEEP_MS / 7) utimesSync(path, new Date(), new Date());
    return path;
  }

  /**
   * Copies it from the original file, where the agent's files can be read. Throws 'input-missing' if the file has
   * changed.
   */
  copy(blob: Blob): string {
    const path = join(this.#dir, blob.sha256);
    const part = `${path}.${process.pid}.part`;
    try {
      copyFileSync(blob.path, part, constants.COPYFILE_FICLONE);
    } catch (cause) {
      throw uncopied(blob, part, cause);
    }
    return this.#keep(blob, part, digestOf(part));
  }

  /** Like `copy`, but asynchronous, for large files. */
  copyLarge(blob: Blob): Promise<string> {
    return this.#once(blob, async () => {
      const part = join(this.#dir, `${blob.sha256}.${process.pid}.part`);
      await copyFile(blob.path, part, constants.COPYFILE_FICLONE).catch((cause: unknown) => {
        throw uncopied(blob, part, cause);
      });
      return this.#keep(blob, part, await sha256Of(part));
    });
  }

  pull(blob: Blob, pull: Pull, stream?: Stream): Promise<string> {
    return this.#once(blob, () => this.#turns.run(() => this.#pull(blob, pull, stream)));
  }

  #once(blob: Blob, bring: () => Promise<string>): Promise<string> {
    const known = this.#coming.get(blob.sha256);
    // What was brought for a job that is not wanted any more may be needed by another.
    if (known) return known.catch((thrown: unknown) => (isInterrupted(thrown) ? this.#once(blob, bring) : known));
    const coming = bring().finally(() => this.#coming.delete(blob.sha256));
    this.#coming.set(blob.sha256, coming);
    return coming;
  }

  async #pull(blob: Blob, pull: Pull, stream?: Stream): Promise<string> {
    const part = join(this.#dir, `${blob.sha256}.${process.pid}.part`);
    const hash = createHash('sha256');
    if (blob.bytes <= PIECE) {
      const bytes = blob.bytes === 0 ? Buffer.alloc(0) : await pull(blob, 0, blob.bytes);
      writeFileSync(part, bytes, { mode: 0o600 });
      return this.#keep(blob, part, hash.update(bytes).digest('hex'));
    }
    const fd = openSync(part, 'w', 0o600);
    try {
      for await (const bytes of pulled(blob, pull, stream)) {
        hash.update(bytes);
        for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
      }
    } catch (thrown) {
      rmSync(part, { force: true });
      throw thrown;
    } finally {
      closeSync(fd);
    }
    return this.#keep(blob, part, hash.digest('hex'));
  }

  /**
   * The content of a small file: from the cache, or else from the original, if that can be read here. Throws
   * 'input-missing' if it has changed.
   */
  content(blob: Blob): Buffer {
    const known = this.#contents.get(blob.sha256);
    if (known) return known;
    let content: Buffer;
    try {
      content = readFileSync(this.here(blob) ?? blob.path);
    } catch (cause) {
      throw changed(blob, cause);
    }
    if (createHash('sha256').update(content).digest('hex') !== blob.sha256) throw changed(blob);
    if (this.#held > MOST_HELD) {
      this.#contents.clear();
      this.#held = 0;
    }
    this.#contents.set(blob.sha256, content);
    this.#held += content.length;
    return content;
  }

  /** When the disk is full: deletes the files that no run uses. `used`: SHA-256 sums. */
  clear(used: ReadonlySet<string>): void {
    for (const name of readdirSync(this.#dir)) {
      const sha256 = name.slice(0, 64);
      if (!used.has(sha256) && !this.#coming.has(sha256)) rmSync(join(this.#dir, name), { force: true });
    }
  }

  #keep(blob: Blob, part: string, digest: string): string {
    if (digest !== blob.sha256) {
      rmSync(part, { force: true });
      throw changed(blob);
    }
    const path = join(this.#dir, blob.sha256);
    renameSync(part, path);
    return path;
  }
}

function isInterrupted(thrown: unknown): boolean {
  return thrown instanceof GryphusError && thrown.code === 'interrupted';
}

/** After its first piece by a connection of its own, if there is one then; what does not come by that, by the other. */
async function* pulled(blob: Blob, pull: Pull, stream?: Stream): AsyncGenerator<Buffer> {
  const first = await pull(blob, 0, PIECE);
  yield first;
  let at = first.length;
  try {
    for await (const bytes of stream?.(at) ?? []) {
      at += bytes.length;
      yield bytes;
    }
  } catch {
    // It was cut.
  }
  yield* pieces((offset, most) => pull(blob, offset, most), at, blob.bytes);
}

function uncopied(blob: Blob, part: string, cause: unknown): unknown {
  rmSync(part, { force: true });
  return isFull(cause) ? cause : changed(blob, cause);
}

function changed(blob: Blob, cause?: unknown): GryphusError {
  return new GryphusError('input-missing', `${blob.path} has changed since the job was prepared.`, { cause });
}

function digestOf(path: string): string {
  const hash: Hash = createHash('sha256');
  const fd = openSync(path, 'r');
  const buffer = Buffer.allocUnsafe(BLOCK);
  try {
    for (let got = readSync(fd, buffer); got > 0; got = readSync(fd, buffer)) hash.update(buffer.subarray(0, got));
  } finally {
    closeSync(fd);
  }
  return hash.digest('hex');
}

/** Files larger than this, in bytes, are copied asynchronously. */
export const LARGE = 8 << 20;

/** Copies a run's large inputs into its sandbox; `furnish` adds the rest. */
export async function placeLarge({ work }: AttemptPlace, { inputs }: RunSpec, cache: BlobCache): Promise<void> {
  for (const input of inputs) {
    if (input.kind !== 'file' || input.file.kind !== 'blob' || input.file.blob.bytes <= LARGE) continue;
    const to = join(work, input.name);
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    await copyFile(cached(input.file.blob, cache), to, constants.COPYFILE_FICLONE);
  }
}

/**
 * Puts a run's files into its sandbox; every blob must be in the cache. Throws a GryphusError 'input-missing' or
 * 'output-missing' (the program cannot be run) that says what is wrong.
 */
export function furnish(dir: AttemptPlace, spec: RunSpec, cache: BlobCache, reused?: ReusedSandbox): PlacedJob {
  const { work } = dir;
  if (spec.shared !== undefined) {
    const { cwd, executable, stdin } = spec.shared;
    return { program: runnable(executable, cwd), cwd, stdin, scratch: work };
  }
  if (reused) {
    reused.furnish(spec, dir.stdin, (blob) => cache.content(blob));
    const program = spec.executable.kind === 'there' ? spec.executable.path : './condor_exec.exe';
    return { program: runnable(program, work, contentKey(spec)), cwd: undefined, stdin: undefined, scratch: work };
  }
  for (const input of spec.inputs) {
    const to = join(work, input.name);
    mkdirSync(input.kind === 'directory' ? to : dirname(to), { recursive: true, mode: 0o700 });
    if (input.kind === 'file') placeFile(input.file, to, input.executable, cache);
  }
  let stdin: string | undefined;
  if (spec.stdin !== undefined) {
    stdin = spec.stdin.kind === 'there' ? spec.stdin.path : dir.stdin;
    placeFile(spec.stdin, dir.stdin, false, cache);
  }
  const place = { cwd: spec.cwd, stdin, scratch: work };
  const program = join(work, 'condor_exec.exe');
  if (spec.container) {
    // The contents of the image cannot be examined from here.
    if (spec.executable.kind === 'there') return { program: spec.executable.path, ...place };
    placeFile(spec.executable, program, true, cache);
    return { program: join(sandboxInside(spec.container, work), 'condor_exec.exe'), ...place };
  }
  if (spec.executable.kind === 'there') return { program: runnable(spec.executable.path, spec.cwd ?? work), ...place };
  placeFile(spec.executable, program, true, cache);
  runnable(program, work);
  return { program: spec.cwd === undefined ? './condor_exec.exe' : program, ...place };
}

/** Names at the top of the sandbox that are not the job's own work. */
export function foreignNames(work: string, { inputs }: RunSpec): string[] {
  const own = new Set(inputs.flatMap((input) => (input.kind === 'file' && input.restored ? [input.name] : [])));
  return readdirSync(work).filter((name) => !own.has(name));
}

function placeFile(file: SiteFile, to: string, executable: boolean, cache: BlobCache): void {
  if (file.kind === 'there') {
    if (!existsSync(file.path)) throw new GryphusError('input-missing', `The input ${file.path} does not exist.`);
    symlinkSync(file.path, to);
    return;
  }
  if (file.kind === 'url') throw new GryphusError('input-missing', `The input ${file.url} was not fetched.`);
  const { blob } = file;
  const isThere = blob.bytes > LARGE && statSync(to, { throwIfNoEntry: false })?.size === blob.bytes;
  if (!isThere) copyFileSync(cached(blob, cache), to, constants.COPYFILE_FICLONE);
  chmodSync(to, executable ? 0o700 : 0o600);
}

function cached(blob: Blob, cache: BlobCache): string {
  const path = cache.here(blob);
  if (path === undefined) throw new GryphusError('input-missing', `The input ${blob.path} did not arrive.`);
  return path;
}

/** Returns the program's path, or throws an explanation of any problem that can be detected before it is started. */
function runnable(program: string, cwd: string, content?: string): string {
  const same = content === undefined ? undefined : KNOWN.get(content);
  if (same !== undefined && Date.now() - same < 10_000) return program;
  if (!existsSync(cwd)) throw cannot(`The directory ${cwd} does not exist there.`);
  if (!program.includes('/')) return program;
  const file = program.startsWith('/') ? program : join(cwd, program);
  const known = KNOWN.get(file);
  if (known !== undefined && Date.now() - known < 10_000) return program;
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found) throw cannot(`The program ${file} does not exist there.`);
  if (found.isDirectory()) throw cannot(`The program ${file} is a directory.`);
  if ((found.mode & 0o111) === 0) throw cannot(`The program ${file} may not be executed there.`);
  const interpreter = /^#![ \t]*([^ \t\n]+)/.exec(firstLine(file))?.[1];
  if (interpreter !== undefined && !existsSync(interpreter))
    throw cannot(`The interpreter '${interpreter}' of ${file} does not exist there.`);
  if (KNOWN.size > 1000) KNOWN.clear();
  if (content !== undefined) KNOWN.set(content, Date.now());
  else if (program.startsWith('/') && !file.startsWith(cwd)) KNOWN.set(file, Date.now());
  return program;
}

function contentKey({ executable }: RunSpec): string | undefined {
  return executable.kind === 'blob' ? `sha256:${executable.blob.sha256}` : undefined;
}

/** Programs outside sandboxes, or their content, and when each was last found to be runnable. */
const KNOWN = new Map<string, number>();

/** The beginning of a file, at most 256 bytes, as latin1. */
function firstLine(file: string): string {
  const buffer = Buffer.alloc(256);
  const fd = openSync(file, 'r');
  try {
    return buffer.toString('latin1', 0, readSync(fd, buffer));
  } finally {
    closeSync(fd);
  }
}

function cannot(message: string): GryphusError {
  return new GryphusError('output-missing', message);
}
