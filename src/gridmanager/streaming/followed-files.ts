import type { AttemptKey } from '../../job/ids.ts';
import type { FileSize, FollowFiles, Piece, WantedPiece } from '../../site/contract.ts';
import type { Grown, GrownFiles } from '../../staging/grown-files.ts';

/** How much of what is here is asked for again and compared, bytes: another content shows that the file was rewritten. */
const OVERLAP = 256;
/** More files of one job are not followed: they come at its end. */
const MOST_FILES = 100_000;
/** The most that is expected of one piece, bytes. */
const EXPECTED = 4 << 20;

interface FileState {
  /** Its size at the site, bytes, as last heard. */
  there: number;
  /** Bytes that are here, and how often the job had begun it anew. */
  have: number;
  version: number;
  /** What has been asked for of it. `anew`: it had shrunk. */
  asked: { readonly offset: number; readonly expected: number; readonly anew: boolean } | undefined;
}

const EMPTY = new Uint8Array(0);

/** A file of which more has come. */
export interface GrownFile {
  readonly name: string;
  readonly version: number;
}

export interface FollowedFilesOptions {
  readonly key: AttemptKey;
  readonly patterns: readonly string[];
  readonly spool: GrownFiles;
  /** Whether the job's owner wants a file of this name; asked once for each. */
  readonly isWanted: () => Promise<(name: string) => boolean>;
}

/**
 * The files of one running attempt that come home while they grow. The site tells sizes; what differs from what is here is
 * asked for. A file that has shrunk, or whose end is not as it came, was rewritten, and comes from its beginning.
 */
export class FollowedFiles {
  readonly #options: FollowedFilesOptions;
  readonly #files = new Map<string, FileState>();
  /** Those to be asked for. */
  readonly #wants = new Set<string>();
  #known: Promise<readonly [(name: string) => boolean, (name: string) => Grown | undefined]> | undefined;
  #afresh = true;
  /** What may be on its way, bytes. */
  expected = 0;

  constructor(options: FollowedFilesOptions) {
    this.#options = options;
  }

  /** Whether there is anything to ask for. */
  get isHungry(): boolean {
    return this.#wants.size > 0;
  }

  /** What to ask in the next poll: of at most so many files, until so many bytes are on their way. */
  next(most: number, bytes: number): FollowFiles {
    const wanted: WantedPiece[] = [];
    for (const name of this.#wants) {
      if (wanted.length >= most || this.expected >= bytes) break;
      this.#wants.delete(name);
      const state = this.#files.get(name);
      if (state === undefined) continue;
      const { there, have } = state;
      const anew = there < have;
      const offset = anew ? 0 : have - Math.min(have, OVERLAP);
      const expected = Math.min(EXPECTED, there - offset);
      state.asked = { offset, expected, anew };
      this.expected += expected;
      wanted.push({ name, offset });
    }
    return { patterns: this.#options.patterns, afresh: this.#afresh, wanted };
  }

  /** The site has answered the poll. */
  answered(): void {
    this.#afresh = false;
  }

  /** The poll was not answered. */
  unanswered(): void {
    this.#afresh = true;
    this.lost();
  }

  /** What has been asked for, and has not come, will not come. */
  lost(): void {
    for (const [name, state] of this.#files) if (state.asked) this.#settle(name, state);
  }

  async takeSizes(sizes: readonly Omit<FileSize, 'key'>[]): Promise<void> {
    this.#known ??= this.#look();
    const [isWanted, left] = await this.#known;
    for (const { name, bytes } of sizes) {
      let state = this.#files.get(name);
      if (state === undefined) {
        if (this.#files.size >= MOST_FILES || !isWanted(name)) continue;
        const { version = 0, bytes: have = 0 } = left(name) ?? {};
        state = { there: 0, have, version, asked: undefined };
        this.#files.set(name, state);
      }
      state.there = bytes;
      if (!state.asked) this.#settle(name, state);
    }
  }

  /** Keeps what has come. `undefined`: nothing new. Rejects if it cannot be written here. */
  async takePiece({ name, offset, data }: Omit<Piece, 'key'>): Promise<GrownFile | undefined> {
    const state = this.#files.get(name);
    const { asked } = state ?? {};
    if (state === undefined || asked?.offset !== offset) return undefined;
    const { key, spool } = this.#options;
    const { have, version } = state;
    const overlap = have - offset;
    const isSame =
      !asked.anew && (await spool.read(key, name, version, offset, overlap)).equals(data.subarray(0, overlap));
    if (data.length === 0 || (isSame && data.length === overlap)) {
      // There is no more of it, or it has gone: its next size will tell.
      state.there = have;
      this.#settle(name, state);
      return undefined;
    }
    if (isSame) {
      await spool.append(key, name, version, data.subarray(overlap));
      state.have += data.length - overlap;
    } else {
      const fresh = offset === 0 ? data : EMPTY;
      state.version += 1;
      state.have = fresh.length;
      await spool.append(key, name, state.version, fresh);
      await spool.drop(key, name, version);
    }
    state.there = Math.max(state.there, state.have);
    this.#settle(name, state);
    return state.have === 0 ? undefined : { name, version: state.version };
  }

  /** Those of which something is here already: another process may not have carried all of it on. */
  here(): GrownFile[] {
    return [...this.#files].flatMap(([name, { have, version }]) => (have > 0 ? [{ name, version }] : []));
  }

  #settle(name: string, state: FileState): void {
    this.expected -= state.asked?.expected ?? 0;
    state.asked = undefined;
    if (state.there === state.have) this.#wants.delete(name);
    else this.#wants.add(name);
  }

  async #look(): Promise<readonly [(name: string) => boolean, (name: string) => Grown | undefined]> {
    const { isWanted, spool, key } = this.#options;
    return [await isWanted(), await spool.left(key)];
  }
}
