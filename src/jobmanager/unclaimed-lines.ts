import type { AttemptKey } from '../job/ids.ts';

/** The tag of one submission of an attempt, `gryphus.KEY.N`. */
export const TAG = /^gryphus\.(.+)\.(\d+)$/;

/** A line of the queue that carries our tag, as its site printed it. */
export interface UnclaimedLine {
  readonly tag: string;
  readonly batchId: string;
  readonly message: string;
}

/**
 * Lines of the queue whose attempts are not known here: the queue is queried before the directory is listed, and a
 * directory may be lost while its job lives on.
 */
export class UnclaimedLines {
  readonly #byTag = new Map<string, Map<string, string>>();

  clear(): void {
    this.#byTag.clear();
  }

  /** `+`: the line appeared or changed; `-`: it left the queue. */
  keep(kind: string, { tag, batchId, message }: UnclaimedLine): void {
    const copies = this.#byTag.get(tag) ?? new Map<string, string>();
    if (kind === '+') copies.set(batchId, message);
    else copies.delete(batchId);
    if (copies.size === 0) this.#byTag.delete(tag);
    else this.#byTag.set(tag, copies);
  }

  /** Removes the lines of a tag and returns them. */
  take(tag: string): readonly UnclaimedLine[] {
    const lines = [...(this.#byTag.get(tag) ?? [])].map(([batchId, message]) => ({ tag, batchId, message }));
    this.#byTag.delete(tag);
    return lines;
  }

  /**
   * Finds the lines of attempts by their keys. An element of an array whose map is lost has a tag that no longer names
   * its attempt, `TAG[INDEX]`: it is found by the batch system's id.
   */
  finder(): (key: AttemptKey, batchId: string | undefined) => UnclaimedLine | undefined {
    const byKey = new Map<string, UnclaimedLine>();
    const elements = new Map<string, UnclaimedLine>();
    for (const [tag, copies] of this.#byTag) {
      const key = TAG.exec(tag)?.[1];
      for (const [batchId, message] of copies) {
        if (key === undefined) elements.set(batchId, { tag, batchId, message });
        else byKey.set(key, { tag, batchId, message });
      }
    }
    return (key, batchId) => byKey.get(key) ?? (batchId === undefined ? undefined : elements.get(batchId));
  }
}
