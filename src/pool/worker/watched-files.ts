import { constants, lstatSync, readdirSync, realpathSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { nameMatcher } from '../../util/name-patterns.ts';
import type { AttemptPlace } from './attempt-place.ts';

/** The most bytes of a file in one message. */
const PIECE = 1 << 20;
/** Looking takes at most this share of the time, and is done at most so often (milliseconds). */
const SHARE = 20;
const SOONEST_MS = 500;
/** More files of one job are not followed. */
const MOST_FILES = 100_000;

export interface SizedFile {
  readonly name: string;
  readonly bytes: number;
}

/** The files of one running job that are wanted while they grow: which there are, and how large they are. */
export class WatchedFiles {
  readonly #work: string;
  readonly #depth: number;
  readonly #matches: (name: string) => boolean;
  readonly #told = new Map<string, number>();
  #next = 0;
  #isFirst = true;

  constructor(work: string, patterns: readonly string[]) {
    this.#work = work;
    this.#matches = nameMatcher(patterns);
    this.#depth = Math.max(...patterns.map((pattern) => pattern.split('/').length));
  }

  /** Sizes that have changed since they were told; `undefined`: it is not yet time to look. Times in milliseconds. */
  news(now: () => number): { readonly files: readonly SizedFile[]; readonly isFirst: boolean } | undefined {
    const began = now();
    if (began < this.#next) return undefined;
    const files: SizedFile[] = [];
    this.#look('', 1, files);
    const ended = now();
    this.#next = ended + Math.max(SOONEST_MS, (ended - began) * SHARE);
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    return { files, isFirst };
  }

  /** The names of all of them. */
  all(): string[] {
    const files: SizedFile[] = [];
    this.#look('', 1, files);
    return files.map(({ name }) => name);
  }

  knows(name: string): boolean {
    return this.#told.has(name);
  }

  /** Links are not followed: what they lead to is not in the directory. */
  #look(directory: string, depth: number, files: SizedFile[]): void {
    for (const entry of entriesOf(join(this.#work, directory))) {
      const name = join(directory, entry.name);
      if (entry.isDirectory() && depth < this.#depth) this.#look(name, depth + 1, files);
      if (!entry.isFile() || !this.#matches(name)) continue;
      const bytes = lstatSync(join(this.#work, name), { throwIfNoEntry: false })?.size;
      if (bytes === undefined || this.#told.get(name) === bytes) continue;
      if (!this.#told.has(name) && this.#told.size >= MOST_FILES) continue;
      this.#told.set(name, bytes);
      files.push({ name, bytes });
    }
  }
}

/** A directory that has gone, or that the job has closed, has none. Names that are not UTF-8 have no text. */
function entriesOf(directory: string) {
  try {
    return readdirSync(directory, { withFileTypes: true }).filter(({ name }) => !name.includes('\uFFFD'));
  } catch {
    return [];
  }
}

/** Bytes of a file in a job's directory from `offset` on; none if it is no file of the job's, or behind a link. */
export async function watchedPiece({ work, uid }: AttemptPlace, name: string, offset: number): Promise<Buffer> {
  const nothing = Buffer.alloc(0);
  let file: FileHandle;
  try {
    file = await open(join(work, name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return nothing;
  }
  try {
    const found = await file.stat();
    // It may have been moved, or a directory on the way replaced by a link, since it was looked at.
    const isStraight = realpathSync(`/proc/self/fd/${file.fd}`) === join(realpathSync(work), name);
    const isForeign = uid !== undefined && found.uid !== uid && found.nlink > 1;
    if (!found.isFile() || !isStraight || isForeign) return nothing;
    const length = Math.min(PIECE, found.size - offset);
    if (length <= 0) return nothing;
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, offset);
    return buffer.subarray(0, bytesRead);
  } catch {
    return nothing;
  } finally {
    await file.close();
  }
}
