import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Blob, InputFile, SiteFile } from '../../site/contract.ts';
import type { RunSpec } from '../wire/wire.ts';

/** The largest program and the largest input that such a sandbox holds, in bytes. */
const MOST_PROGRAM = 1 << 20;
const MOST_INPUT = 64 << 10;
const MOST_INPUTS = 8;
/**
 * A file whose inode changed less than this long before we looked at it may have changed again without a difference in its
 * times, whose resolution is a clock tick. Milliseconds.
 */
const TICK_MS = 50;

const PROGRAM = 'condor_exec.exe';

/** A file that we placed, and how it looked then. */
interface Placed {
  readonly sha256: string;
  readonly executable: boolean;
  readonly look: string;
  /** Whether a later change would show in `look`. */
  readonly certain: boolean;
}

interface Wanted {
  readonly blob: Blob;
  readonly executable: boolean;
}

/** A run whose program, inputs and standard input are few small files. */
export function hasSmallFiles({ executable, inputs, stdin }: RunSpec): boolean {
  return (
    (executable.kind === 'there' ? executable.path.startsWith('/') : isSmall(executable, MOST_PROGRAM)) &&
    (stdin === undefined || isSmall(stdin, MOST_INPUT)) &&
    inputs.length <= MOST_INPUTS &&
    inputs.every(isSmallInput)
  );
}

function isSmallInput(input: InputFile): boolean {
  return (
    input.kind === 'file' &&
    input.restored === undefined &&
    !input.name.includes('/') &&
    input.name !== PROGRAM &&
    isSmall(input.file, MOST_INPUT)
  );
}

function isSmall(file: SiteFile, most: number): boolean {
  return file.kind === 'blob' && file.blob.bytes <= most;
}

/**
 * A sandbox that jobs use one after another. Files that they left are removed; a program or an input that the next job
 * needs too stays if nobody has touched it, and the file of another input is written again: creating and removing files
 * costs a file system ten times as much.
 */
export class ReusedSandbox {
  readonly #work: string;
  /** By path. */
  readonly #files = new Map<string, Placed>();

  constructor(work: string) {
    this.#work = work;
  }

  /** Puts a run's files into it. `contentOf` throws if the content is not available. */
  furnish({ executable, inputs, stdin }: RunSpec, stdinPath: string, contentOf: (blob: Blob) => Buffer): void {
    const wanted = new Map<string, Wanted>();
    const want = (path: string, file: SiteFile | undefined, runs: boolean) => {
      if (file?.kind === 'blob') wanted.set(path, { blob: file.blob, executable: runs });
    };
    want(join(this.#work, PROGRAM), executable, true);
    want(stdinPath, stdin, false);
    for (const input of inputs)
      if (input.kind === 'file') want(join(this.#work, input.name), input.file, input.executable);
    const spare: string[] = [];
    for (const [path, placed] of this.#files) {
      const one = wanted.get(path);
      if (one && this.#isThere(path, placed, one, contentOf)) wanted.delete(path);
      else if (!one) spare.push(path);
    }
    for (const [path, one] of wanted) this.#place(path, one, this.#files.has(path) ? path : spare.pop(), contentOf);
    for (const path of spare) this.#drop(path);
  }

  /** Removes everything else, except files of these names at the top. Throws if that is not possible. */
  empty(keep: ReadonlySet<string>): void {
    for (const name of readdirSync(this.#work)) {
      const path = join(this.#work, name);
      if (!keep.has(name) && !this.#files.has(path)) rmSync(path, { recursive: true, force: true });
    }
  }

  #isThere(path: string, placed: Placed, { blob, executable }: Wanted, contentOf: (blob: Blob) => Buffer): boolean {
    if (placed.sha256 !== blob.sha256 || placed.executable !== executable) return false;
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (!found || lookOf(found) !== placed.look) return false;
    if (placed.certain) return true;
    if (!readFileSync(path).equals(contentOf(blob))) return false;
    this.#note(path, { blob, executable });
    return true;
  }

  #place(path: string, one: Wanted, old: string | undefined, contentOf: (blob: Blob) => Buffer): void {
    const content = contentOf(one.blob);
    if (old !== undefined) this.#files.delete(old);
    const mode = one.executable ? 0o700 : 0o600;
    if (old !== undefined && old !== path && lstatSync(old, { throwIfNoEntry: false })) renameSync(old, path);
    overwrite(path, content, mode);
    chmodSync(path, mode);
    this.#note(path, one);
  }

  #note(path: string, { blob, executable }: Wanted): void {
    const now = Date.now();
    const found = lstatSync(path);
    const certain = now - found.ctimeMs > TICK_MS;
    this.#files.set(path, { sha256: blob.sha256, executable, look: lookOf(found), certain });
  }

  #drop(path: string): void {
    this.#files.delete(path);
    rmSync(path, { recursive: true, force: true });
  }
}

function lookOf({ dev, ino, mode, nlink, size, ctimeMs, mtimeMs }: Stats): string {
  return `${dev}:${ino}:${mode}:${nlink}:${size}:${ctimeMs}:${mtimeMs}`;
}

/**
 * Writes a file in place: ext4 flushes a file that was truncated first when it is closed, which takes ten times as long.
 * Whatever else a job put under this name, or a file that also has another name, is replaced.
 */
export function overwrite(path: string, bytes: Uint8Array, mode = 0o600): void {
  const fd = openToWrite(path, mode);
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, done);
    if (fstatSync(fd).size > bytes.length) ftruncateSync(fd, bytes.length);
  } finally {
    closeSync(fd);
  }
}

function openToWrite(path: string, mode: number): number {
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    const fd = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode);
    const found = fstatSync(fd);
    if (found.isFile() && found.nlink === 1) return fd;
    closeSync(fd);
  } catch (thrown) {
    if (!lstatSync(path, { throwIfNoEntry: false })) throw thrown;
  }
  rmSync(path, { recursive: true, force: true });
  return openSync(path, O_RDWR | O_CREAT | O_EXCL, mode);
}
