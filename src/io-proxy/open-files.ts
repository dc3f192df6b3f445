/** A file that a job has open by Chirp. Only its path is known at home. */
export interface OpenFile {
  readonly path: string;
  readonly append: boolean;
  position: number;
}

const FIRST = 3;
const MOST = 256;

/** The open files of a job's connection, by descriptor. */
export class OpenFiles {
  readonly #files = new Map<number, OpenFile>();

  /** The smallest free descriptor; `undefined` if too many are open. */
  add(file: OpenFile): number | undefined {
    for (let fd = FIRST; fd < FIRST + MOST; fd++) {
      if (this.#files.has(fd)) continue;
      this.#files.set(fd, file);
      return fd;
    }
    return undefined;
  }

  get(fd: number | undefined): OpenFile | undefined {
    return this.#files.get(fd ?? -1);
  }

  close(fd: number | undefined): boolean {
    return this.#files.delete(fd ?? -1);
  }
}
