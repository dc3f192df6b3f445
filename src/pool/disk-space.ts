import { statfs } from 'node:fs/promises';
import { asError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { ExitRecord } from './attempt-place.ts';
import { freeDiskKb } from './machine.ts';
import type { Run } from './run.ts';

/** With less free space than this, in KB, a worker starts nothing, since it also needs room for its own records. */
export const LEAST_KB = 1024;
export const FREE_DISK = 'FreeDiskKb';

/** The disk space that a worker may still use, checked repeatedly because others also write there. */
export class DiskSpace {
  readonly #dir: string;
  readonly #most: number;
  #kb: number;
  #told: number;
  #looking = false;

  /** `most`: the most that we may use, in KB. */
  constructor(dir: string, most = Number.POSITIVE_INFINITY) {
    this.#dir = dir;
    this.#most = most;
    this.#kb = Math.min(most, freeDiskKb(dir));
    this.#told = this.#kb;
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
    this.#told = this.#kb;
    return { [FREE_DISK]: String(this.#kb) };
  }

  /** Does not block if the file system hangs. Calls `changed` if free space changed enough to be reported. */
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

/** Whether it became full, is no longer full, or changed by a tenth. */
function isNews(told: number, now: number): boolean {
  return told < LEAST_KB !== now < LEAST_KB || Math.abs(now - told) > Math.max(LEAST_KB, told / 10);
}

/** Whether an error, or one of its causes, is a full disk or an exceeded quota. */
export function isFull(thrown: unknown): boolean {
  for (let error: unknown = thrown; error instanceof Error; error = error.cause)
    if (/^(ENOSPC|EDQUOT)\b/.test(error.message)) return true;
  return false;
}

/** Whether a shell's error message says so. */
function saysFull(message: string): boolean {
  return /no space left|quota exceeded/i.test(message);
}

/** Whether a run was not started because its disk was full: another worker may have room for it. */
export function lackedSpace({ dir, starter }: Run, exit: ExitRecord | undefined, space: DiskSpace): boolean {
  return exit ? saysFull(dir.said()) || space.now() < LEAST_KB : starter?.alive === true;
}

export function fullWords(thrown: unknown): string {
  return isFull(thrown) ? NO_SPACE : asError(thrown).message;
}

export const NO_SPACE = 'the disk of its worker is full';
