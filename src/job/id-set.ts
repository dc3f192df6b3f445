import type { JobId } from './ids.ts';

/** Procs per page of bits. */
const PAGE = 1024;

/** A set of job ids, one bit for each because a cluster may have a million procs. */
export class IdSet {
  readonly #clusters = new Map<number, Map<number, Uint32Array>>();

  has({ cluster, proc }: JobId): boolean {
    const word = this.#clusters.get(cluster)?.get(Math.floor(proc / PAGE))?.[(proc % PAGE) >> 5] ?? 0;
    return (word & (1 << (proc & 31))) !== 0;
  }

  /** Returns false if it was already in the set. */
  add(id: JobId): boolean {
    if (this.has(id)) return false;
    const { cluster, proc } = id;
    const pages = this.#clusters.get(cluster) ?? new Map<number, Uint32Array>();
    this.#clusters.set(cluster, pages);
    const at = Math.floor(proc / PAGE);
    const bits = pages.get(at) ?? new Uint32Array(PAGE / 32);
    pages.set(at, bits);
    const word = (proc % PAGE) >> 5;
    bits[word] = (bits[word] ?? 0) | (1 << (proc & 31));
    return true;
  }
}
