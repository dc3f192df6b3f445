import { statfs } from 'node:fs/promises';
import type { AttrTexts } from '../../job/attrs.ts';
import type { RunExitRecord } from './attempt-place.ts';
import { freeDiskKb } from '../host/machine.ts';
import { FREE_DISK, LEAST_KB } from '../host/full-disk.ts';
import type { Run } from './run.ts';

/** The disk space that a worker may still use, checked repeatedly because others also write there. */
export class DiskSpace {
  readonly #dir: string;
  readonly #most: number;
  #kb: number;
  #reported: number;
  #looking = false;

  /** `most`: the most that we may use, in KB. */
  constructor(dir: string, most = Number.POSITIVE_INFINITY) {
    this.#dir = dir;
    this.#most = most;
    this.#kb = Math.min(most, freeDiskKb(dir));
    this.#reported = this.#kb;
  }

  /** KB, as of the last check. */
  get kb(): number {
    return this.#kb;
  }

  /** KB, measured now. */
  now(): number {
    this.#kb = Math.min(this.#most, freeDiskKb(this.#dir));
    return this.#kb;
  }

  ad(): AttrTexts {
    this.#reported = this.#kb;
    return { [FREE_DISK]: String(this.#kb) };
  }

  /** Does not block if the file system hangs. Calls `changed` if free space changed enough to be reported. */
  look(changed: () => void): void {
    if (this.#looking) return;
    this.#looking = true;
    statfs(this.#dir)
      .then(({ bavail, bsize }) => {
        this.#kb = Math.min(this.#most, Math.floor((bavail * bsize) / 1024));
        if (isNews(this.#reported, this.#kb)) changed();
      })
      .catch(() => undefined)
      .finally(() => {
        this.#looking = false;
      });
  }
}

/** Whether it became full, is no longer full, or changed by a tenth. */
function isNews(reported: number, now: number): boolean {
  return reported < LEAST_KB !== now < LEAST_KB || Math.abs(now - reported) > Math.max(LEAST_KB, reported / 10);
}

/** Whether a shell's error message says that the disk is full. */
function saysFull(message: string): boolean {
  return /no space left|quota exceeded/i.test(message);
}

/** Whether a run was not started because its disk was full: another worker may have space for it. */
export function lackedSpace({ dir, starter }: Run, exit: RunExitRecord | undefined, space: DiskSpace): boolean {
  return exit ? saysFull(dir.said()) || space.now() < LEAST_KB : starter?.alive === true;
}
