import { statSync, type Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname } from 'node:path';

/** Directories that hold people's keys. */
const KEYRINGS: ReadonlySet<string> = new Set(['.ssh', '.gnupg', '.globus', '.condor', '.aws', '.kube']);
/** A private key as text (RFC 7468, OpenSSH, OpenPGP), and so a proxy too. */
const PRIVATE_KEY = 'PRIVATE KEY';
/** The part of a file that is searched for a key, from its begin; bytes. */
export const SEARCHED = 1 << 20;
const MOST_KNOWN = 1000;

/** What identifies a directory. */
const identity = ({ dev, ino }: Pick<Stats, 'dev' | 'ino'>) => `${dev}:${ino}`;

/** What no job may reach, even below its submit directory. */
export class Secrets {
  readonly #closed: ReadonlySet<string>;
  readonly #home: string | undefined;
  /** Those directories, the home directory, and all in which they lie. */
  readonly #anchors: ReadonlySet<string>;
  /** Files that were searched: their identity, size and time, and whether they hold a key. */
  readonly #known = new Map<string, boolean>();

  /** `directories`: our own, with the queue, the credentials and the tokens. */
  constructor(directories: readonly string[], home = homedir()) {
    this.#closed = new Set(directories.flatMap((path) => known(path) ?? []));
    this.#home = known(home);
    this.#anchors = new Set([...directories, home].flatMap(withParents).flatMap((path) => known(path) ?? []));
  }

  /**
   * Whether a name in a directory is closed: what lies in our own directories and in those of keys, and the names in the
   * home directory that begin with a dot, by which a job could take over its user's account.
   */
  readonly isClosed = (directory: Stats, name: string): boolean => {
    const here = identity(directory);
    return KEYRINGS.has(name.toLowerCase()) || this.#closed.has(here) || (here === this.#home && name.startsWith('.'));
  };

  /** Whether a directory is one of our own, the home directory, or one above them: jobs may not move or chmod these. */
  readonly isAnchor = (directory: Stats): boolean => this.#anchors.has(identity(directory));

  /** Whether an open file holds a private key, as far as its first megabyte shows. */
  async hasKey(file: FileHandle): Promise<boolean> {
    const found = await file.stat({ bigint: true });
    const id = `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.ctimeNs}`;
    const before = this.#known.get(id);
    if (before !== undefined) return before;
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(SEARCHED, Number(found.size))), {
      position: 0,
    });
    const has = buffer.subarray(0, bytesRead).includes(PRIVATE_KEY);
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(id, has);
    return has;
  }
}

function withParents(path: string): string[] {
  const up = dirname(path);
  return up === path ? [path] : [path, ...withParents(up)];
}

function known(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && identity(found);
}
