import { statfs } from 'node:fs/promises';
import type { AttrTexts } from '../../job/attrs.ts';
import type { ExitRecord } from './attempt-place.ts';
import { freeDiskKb } from '../host/machine.ts';
import { FREE_DISK, LEAST_KB } from '../host/full-disk.ts';
import type { Run } from './run.ts';

/** What of its disk a worker may still use, looked at again and again: others write there as well. */
export class DiskSpace {
  readonly #dir: string;
  readonly #most: number;
  #kb: number;
  #told: number;
  #looking = false;

  /** `most`: more is not ours, KB. */
  constructor(dir: string, most = Number.POSITIVE_INFINITY) {
    this.#dir = dir;
    this.#most = most;
    this.#kb = Math.min(most, freeDiskKb(dir));
    this.#told = this.#kb;
  }

  /** KB, as it was a moment ago. */
  get kb(): number {
    return this.#kb;
  }

  /** KB, as it is now. */
  now(): number {
    this.#kb = Math.min(this.#most, freeDiskKb(this.#dir));
    return this.#kb;
  }

  ad(): AttrTexts {
    this.#told = this.#kb;
    return { [FREE_DISK]: String(this.#kb) };
  }

  /** Never waits for a file system that hangs. `changed` is called where it is so much more or less that others should hear of it. */
  look(changed: () => void): void {
    if (this.#looking) return;
    this.#looking = true;
    statfs(this.#dir)
      .then(({ bavail, bsize }) => {
        this.#kb = Math.min(this.#most, Math.floor((bavail * bsize) / 1024));
        if (isNews(this.#told, this.#kb)) changed();
      })
      .catch(() => undefined)
      .finally(() => {
        this.#looking = false;
      });
  }
}

/** It is full now or is not any more, or a tenth of it came or went. */
function isNews(told: number, now: number): boolean {
  return told < LEAST_KB !== now < LEAST_KB || Math.abs(now - told) > Math.max(LEAST_KB, told / 10);
}

/** As a shell says it. */
function saysFull(message: string): boolean {
  return /no space left|quota exceeded/i.test(message);
}

/** A run was not begun, since its disk was full: another worker may have room for it. */
export function lackedSpace({ dir, starter }: Run, exit: ExitRecord | undefined, space: DiskSpace): boolean {
  return exit ? saysFull(dir.said()) || space.now() < LEAST_KB : starter?.alive === true;
}
