import { closeSync, constants, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { IdleSource, Reading } from './source.ts';

const PIECE = 24 * 256;

/**
 * /dev/input/event*, where they can be read (root, or the group `input`). Only the number of bytes is used: what was
 * typed is overwritten in the same call. A program that reads a device takes nothing away from others.
 */
export class InputDevices implements IdleSource {
  readonly name = 'input';
  readonly #dir: string;
  readonly #open = new Map<string, number>();
  readonly #scratch = Buffer.alloc(PIECE);
  #last: number | undefined;

  constructor(dir = '/dev/input') {
    this.#dir = dir;
  }

  look(at: number): Reading {
    let names: string[];
    try {
      names = readdirSync(this.#dir).filter((name) => name.startsWith('event'));
    } catch {
      return { sees: false, note: `there is no ${this.#dir}` };
    }
    for (const name of this.#open.keys()) if (!names.includes(name)) this.#drop(name);
    let refused = 0;
    for (const name of names) {
      const fd = this.#fd(name);
      if (fd === undefined) refused += 1;
      else if (this.#drain(name, fd) > 0) this.#last = at;
    }
    if (this.#open.size === 0)
      return {
        sees: false,
        note:
          refused === 0
            ? `${this.#dir} is empty`
            : `none of ${names.length} is readable (this needs root, or the group input)`,
      };
    const idle = this.#last === undefined ? undefined : at - this.#last;
    return { sees: true, idle, console: idle, note: `${this.#open.size} of ${names.length} read` };
  }

  close(): void {
    for (const name of this.#open.keys()) this.#drop(name);
  }

  #fd(name: string): number | undefined {
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    try {
      const fd = openSync(join(this.#dir, name), constants.O_RDONLY | constants.O_NONBLOCK);
      this.#open.set(name, fd);
      return fd;
    } catch {
      return undefined;
    }
  }

  #drain(name: string, fd: number): number {
    let bytes = 0;
    try {
      for (let got = PIECE; got === PIECE; bytes += got) got = readSync(fd, this.#scratch, 0, PIECE, null);
    } catch (thrown) {
      const gone = !(thrown instanceof Error && 'code' in thrown && thrown.code === 'EAGAIN');
      if (gone) this.#drop(name);
    } finally {
      this.#scratch.fill(0);
    }
    return bytes;
  }

  #drop(name: string): void {
    const fd = this.#open.get(name);
    this.#open.delete(name);
    if (fd === undefined) return;
    try {
      closeSync(fd);
    } catch {
      // The device is gone.
    }
  }
}
